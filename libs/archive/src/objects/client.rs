//! How the SDK's client is set up.

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
    StalledStreamProtectionConfig,
};
use aws_sdk_s3::{Client, Config};

use super::Options;

/// What the SDK calls the source of the keys.
const PROVIDER: &str = "wakelog";

pub(super) fn build(options: &Options) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .build();
    let mut builder = Config::builder()
        .behavior_version_latest()
        .region(Region::new(options.region.clone()))
        .force_path_style(options.path_style)
        .timeout_config(timeouts)
        // One layer of retries: ours, with our bounds. Each attempt has a bound as a whole, so a stalled body needs
        // no rule of its own.
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        // The checksums are ours as well; some servers do not take those that the SDK adds to everything.
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
    builder.set_endpoint_url(options.endpoint.clone());
    let builder = match (&options.access_key, &options.secret_key) {
        (Some(access_key), Some(secret_key)) => builder.credentials_provider(Credentials::new(
            access_key,
            secret_key,
            options.session_token.clone(),
            None,
            PROVIDER,
        )),
        _ => builder.allow_no_auth(),
    };
    Client::from_conf(builder.build())
}
