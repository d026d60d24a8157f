//! What of a secret is shown: nothing.

use std::fmt;

/// Shown in place of a secret.
pub(crate) const HIDDEN: &str = "<hidden>";

/// A secret that no `{:?}` prints.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

/// A URL without its password, in whatever place it stands.
pub(crate) fn hide_in_url(text: &str) -> String {
    let Ok(mut url) = url::Url::parse(text) else {
        return HIDDEN.to_owned();
    };
    if url.password().is_some() && url.set_password(Some("hidden")).is_err() {
        return HIDDEN.to_owned();
    }
    let is_secret = |name: &str| name.to_ascii_lowercase().contains("password");
    if url.query_pairs().any(|(name, _)| is_secret(&name)) {
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        url.query_pairs_mut()
            .clear()
            .extend_pairs(pairs.into_iter().map(|(name, value)| {
                let value = if is_secret(&name) {
                    "hidden".to_owned()
                } else {
                    value
                };
                (name, value)
            }));
    }
    url.to_string()
}

/// A librdkafka setting as it may be shown.
pub(crate) fn hide_kafka<'a>(name: &str, value: &'a str) -> &'a str {
    let secret = ["password", "secret", "key.pem", "jaas", "oauthbearer.config"];
    if secret.iter().any(|word| name.contains(word)) {
        HIDDEN
    } else {
        value
    }
}
