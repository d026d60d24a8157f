//! Runs an engine of the tests in a container, in the foreground: what the container says is what this says, and when this is told
//! to end, or the container ends, the container is removed.
//!
//! ```text
//! wakelog-test-containers kafka IMAGE PORT CONTROLLER_PORT
//! wakelog-test-containers postgres IMAGE PORT [NAME=VALUE ...]
//! ROOT_ACCESS_KEY=... ROOT_SECRET_KEY=... wakelog-test-containers s3 IMAGE PORT FOLDER
//! ```

mod client;
mod container;
mod images;
mod signals;

use anyhow::{Context as _, Result, bail};
use container::Request;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let request = request(&arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(container::run(request))
}

fn request(arguments: &[String]) -> Result<Request> {
    let [engine, image, port, rest @ ..] = arguments else {
        bail!("usage: wakelog-test-containers kafka|postgres|s3 IMAGE PORT ...");
    };
    let port = port.parse::<u16>().context("the port")?;
    match (engine.as_str(), rest) {
        ("kafka", [controller_port]) => Ok(images::kafka(
            image,
            port,
            controller_port.parse::<u16>().context("the controller's port")?,
        )),
        ("postgres", settings) => Ok(images::postgres(image, port, settings)),
        ("s3", [folder]) => images::s3(image, port, folder),
        _ => bail!("{engine}: no such engine, or other arguments than it takes"),
    }
}
