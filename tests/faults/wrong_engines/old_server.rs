//! A proxy before PostgreSQL that makes it say to be of an older version, for want of a server that is: the greeting is all that
//! is changed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// What it says to be.
pub(super) const VERSION: &str = "13.9";

const PARAMETER_STATUS: u8 = b'S';
const READY_FOR_QUERY: u8 = b'Z';

/// Serves for as long as this process lives.
pub(super) fn before(server_port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server_port));
            if let Ok(server) = server {
                // A connection that breaks is the client's business.
                std::thread::spawn(move || hand_on(client, server).ok());
            }
        }
    });
    port
}

fn hand_on(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        io::copy(&mut from_client, &mut to_server).ok();
        to_server.shutdown(Shutdown::Write).ok();
    });
    let (mut from_server, mut to_client) = (server, client);
    greet(&mut from_server, &mut to_client)?;
    io::copy(&mut from_server, &mut to_client)?;
    to_client.shutdown(Shutdown::Both)
}

/// Hands on messages up to the first that says that a query may come.
fn greet(server: &mut impl Read, client: &mut impl Write) -> io::Result<()> {
    loop {
        let mut kind = [0];
        server.read_exact(&mut kind)?;
        let mut length = [0; 4];
        server.read_exact(&mut length)?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        server.read_exact(&mut body)?;
        if kind[0] == PARAMETER_STATUS && body.starts_with(b"server_version\0") {
            body = format!("server_version\0{VERSION}\0").into_bytes();
        }
        client.write_all(&kind)?;
        client.write_all(&(body.len() as u32 + 4).to_be_bytes())?;
        client.write_all(&body)?;
        if kind[0] == READY_FOR_QUERY {
            return Ok(());
        }
    }
}
