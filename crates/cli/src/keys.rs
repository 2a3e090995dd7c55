//! The file of `serve --keys`: hosts, the secrets by which they and the drive prove to each other who they are,
//! and the keys of their connections under TLS.

use crate::failure::unusable;
use crate::serve::is_name;
use crate::shell::Shell;
use rig::config::{line_of, read};
use rig::{Keys, KnownHost, Pair, Secret, TlsKey};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
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

/// Permissions of group and others to read or write a file.
const OF_OTHERS: u32 = 0o066;

/// Says so where others than its owner may read or write the file: who can is any host.
pub(crate) fn note_openness(shell: &mut Shell<'_>, path: &Path) -> io::Result<()> {
    // What cannot be looked at cannot be read either, and that is an error of its own. A pipe is nobody's to keep.
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    let mode = metadata.permissions().mode() & 0o777;
    if !metadata.is_file() || mode & OF_OTHERS == 0 {
        return Ok(());
    }
    let file = path.display();
    shell
        .warn(&format!("warning: {file}: others than its owner may read or write it (mode {mode:03o}); expected 600\n"))
}

/// What the parser says, without any value: what stands in the wrong place or has the wrong type may be a secret all the same.
fn unparsed(file: &str, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let before = String::from_utf8_lossy(&text.as_bytes()[..start]);
    let (line, column) = (line_of(text, start), before.chars().rev().take_while(|c| *c != '\n').count() + 1);
    let said = told(error.message());
    let written = text.lines().nth(line - 1).and_then(|line| line.split_once('='));
    let field = written.map(|(key, _)| key.trim()).filter(|key| FIELDS.contains(key));
    let field = field.map_or_else(String::new, |field| format!("{field}: "));
    unusable(format!("{file}:{line}:{column}: {field}{said}"), "")
}

/// Fields of a table.
const FIELDS: [&str; 5] = ["nqn", "secret", "controller_secret", "tls_key", "older_libnvme"];

/// What the parser says, without what it found.
fn told(said: &str) -> String {
    let expected = |of: &str| of.rsplit_once(", expected ").map_or(String::new(), |(_, it)| format!("; expected {it}"));
    if let Some(found) = said.strip_prefix("unknown field `") {
        let name = found.split('`').next().unwrap_or_default();
        let is_plain = name.len() <= 20 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let name = if is_plain { format!(" `{name}`") } else { String::new() };
        return format!("unknown field{name}{}", expected(found));
    }
    if ["invalid type: ", "invalid value: ", "invalid length "].iter().any(|found| said.starts_with(found)) {
        return format!("a value of the wrong type{}", expected(said));
    }
    said.lines().next().unwrap_or_default().into()
}

/// Reads the file. What is wrong with it is said without any value.
pub(crate) fn read_keys(path: &Path) -> anyhow::Result<Keys> {
    let file = path.display().to_string();
    let text = read(path)?;
    let File { host: hosts } = toml::from_str(&text).map_err(|error| unparsed(&file, &text, &error))?;
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
    let (mut keys, mut seen) = (Keys::default(), BTreeMap::new());
    for host in &hosts {
        let nqn = &host.nqn;
        if !is_name(nqn.get_ref()) {
            return Err(wrong("nqn", nqn, "it is no NVMe qualified name; expected nqn.YYYY-MM.DOMAIN:NAME".into()));
        }
        let line = line_of(&text, nqn.span().start);
        if let Some(first) = seen.insert(nqn.get_ref(), line) {
            let error = format!("a table before has the same, on line {first}; expected one table a host");
            return Err(wrong("nqn", nqn, error));
        }
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
