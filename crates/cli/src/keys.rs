//! The file of `serve --keys`: hosts, and the secrets by which they and the drive prove to each other who they are.

use crate::failure::unusable;
use rig::config::{line_of, read, syntax};
use rig::{Keys, Secret};
use serde::Deserialize;
use std::path::Path;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    host: Vec<Host>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    nqn: Spanned<String>,
    /// What the host proves to know: `--dhchap-secret` of `nvme connect`.
    secret: Spanned<String>,
    /// What the drive proves to know, if the host asks: `--dhchap-ctrl-secret`.
    controller_secret: Option<Spanned<String>>,
}

/// Reads the file. What is wrong with a secret is said without it.
pub(crate) fn read_keys(path: &Path) -> anyhow::Result<Keys> {
    let file = path.display().to_string();
    let text = read(path)?;
    let File { host } = toml::from_str(&text).map_err(|error| syntax(&file, &text, &error))?;
    let secret = |key: &str, value: &Spanned<String>| {
        Secret::parse(value.get_ref()).map_err(|error| {
            let line = line_of(&text, value.span().start);
            unusable(format!("{file}:{line}: {key}: {error}"), "")
        })
    };
    let mut keys = Keys::default();
    for Host { nqn, secret: of_host, controller_secret } in &host {
        super::serve::check_name(nqn.get_ref()).map_err(|error| {
            let line = line_of(&text, nqn.span().start);
            unusable(format!("{file}:{line}: nqn: {error}"), "")
        })?;
        let controller = controller_secret.as_ref().map(|value| secret("controller_secret", value)).transpose()?;
        keys.admit(nqn.get_ref().clone(), secret("secret", of_host)?, controller);
    }
    Ok(keys)
}
