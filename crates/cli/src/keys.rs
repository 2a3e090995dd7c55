//! The file of `serve --keys`: hosts, the secrets by which they and the drive prove to each other who they are,
//! and the keys of their connections under TLS.

use crate::failure::unusable;
use rig::config::{line_of, read, syntax};
use rig::{Keys, KnownHost, Pair, Secret, TlsKey};
use serde::Deserialize;
use std::path::Path;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    host: Vec<Host>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    nqn: Spanned<String>,
    /// What the host proves to know: `--dhchap-secret` of `nvme connect`.
    secret: Option<Spanned<String>>,
    /// What the drive proves to know, if the host asks: `--dhchap-ctrl-secret`.
    controller_secret: Option<Spanned<String>>,
    /// The key of its connections under TLS: `--tls-key`.
    tls_key: Option<Spanned<String>>,
    /// Whether the host has libnvme before 1.16, which derives from that key differently.
    #[serde(default)]
    older_libnvme: bool,
}

/// Reads the file. What is wrong with a secret is said without it.
pub(crate) fn read_keys(path: &Path) -> anyhow::Result<Keys> {
    let file = path.display().to_string();
    let text = read(path)?;
    let File { host: hosts } = toml::from_str(&text).map_err(|error| syntax(&file, &text, &error))?;
    if hosts.is_empty() {
        return Err(unusable(
            format!("{file}: it names no host; expected a table [[host]] for each that is let in"),
            "",
        ));
    }
    let wrong = |key: &str, at: &Spanned<String>, error: String| {
        let line = line_of(&text, at.span().start);
        unusable(format!("{file}:{line}: {key}: {error}"), "")
    };
    let secret = |key: &str, value: &Spanned<String>| {
        Secret::parse(value.get_ref()).map_err(|error| wrong(key, value, error.to_string()))
    };
    let tls_key = |value: &Spanned<String>| {
        TlsKey::parse(value.get_ref()).map_err(|error| wrong("tls_key", value, error.to_string()))
    };
    let has_tls = hosts.iter().any(|host| host.tls_key.is_some());
    let mut keys = Keys::default();
    for host in &hosts {
        let nqn = &host.nqn;
        super::serve::check_name(nqn.get_ref()).map_err(|error| wrong("nqn", nqn, error.to_string()))?;
        let controller = host.controller_secret.as_ref();
        let secrets = match (&host.secret, controller) {
            (None, Some(value)) => return Err(wrong("controller_secret", value, "expected a secret beside it".into())),
            (None, None) => None,
            (Some(value), _) => Some(Pair {
                host: secret("secret", value)?,
                controller: controller.map(|value| secret("controller_secret", value)).transpose()?,
            }),
        };
        let tls = host.tls_key.as_ref().map(tls_key).transpose()?;
        let tls = tls.map(|key| if host.older_libnvme { key.of_older_libnvme() } else { key });
        if has_tls && tls.is_none() {
            let error = "it has no tls_key, but another host has: a port speaks TLS with all hosts or with none";
            return Err(wrong("host", nqn, error.into()));
        }
        if secrets.is_none() && tls.is_none() {
            return Err(wrong("host", nqn, "expected a secret, a tls_key, or both".into()));
        }
        keys.admit(nqn.get_ref().clone(), KnownHost { secrets, tls });
    }
    Ok(keys)
}
