//! `tls` of a listener and of an entry of `clients`. The files are read here too: what cannot work is said before anything
//! starts, at the key that names the file.

use super::{Fields, Shape};
use crate::config::plan::{ClientTls, CommonName, ListenerTls};
use crate::names::namers::pattern::Pattern;
use muxgate_rpc::tls::{ClientAuth, ClientFiles, FileError, Role, ServerFiles, Trust, Versions};
use muxgate_wire::mux::handshake::TlsLevel;
use std::path::PathBuf;

const SERVER: Shape = Shape {
    what: "`tls` of a listener",
    keys: &[
        "certPath",
        "keyPath",
        "intermediateCertsPath",
        "caCertPath",
        "requireClientAuth",
        "protocols",
        "opportunistic",
    ],
    strangers: &[
        ("ciphers", "the ciphers that are safe are used: leave this out"),
        ("commonName", "a server's name stands in its certificate: leave this out"),
        ("trustCertsBundle", "write `caCertPath`"),
    ],
};

const CLIENT: Shape = Shape {
    what: "`tls` of an entry of `clients`",
    keys: &[
        "commonName",
        "trustCertsBundle",
        "disableValidation",
        "clientAuth",
        "protocols",
        "opportunistic",
    ],
    strangers: &[
        ("trustCerts", "write `trustCertsBundle`, one file with all the authorities"),
        ("caCertPath", "write `trustCertsBundle`"),
        ("certPath", "write `clientAuth: {certPath: ..., keyPath: ...}`"),
        ("keyPath", "write `clientAuth: {certPath: ..., keyPath: ...}`"),
        ("enabled", "`tls: none` switches it off"),
    ],
};

const CLIENT_AUTH: Shape = Shape {
    what: "`clientAuth`",
    keys: &["certPath", "keyPath"],
    strangers: &[(
        "intermediateCertsPath",
        "write the intermediate certificates into the file of `certPath`, behind ours",
    )],
};

const LEVELS: [(&str, TlsLevel); 3] =
    [("off", TlsLevel::Off), ("desired", TlsLevel::Desired), ("required", TlsLevel::Required)];

/// What can be written for `tls`.
fn none_or(shape: &Shape) -> String {
    format!("write `tls: none` for plain connections, or lines with the keys {}", shape.keys.join(", "))
}

/// `tls` of a listener.
pub(super) fn server(listener: &Fields<'_>) -> Option<ListenerTls> {
    if listener.is_none("tls") {
        return None;
    }
    let fields = listener.section_or_word("tls", &SERVER, &none_or(&SERVER))?;
    fields.missing("certPath", "for example `certPath: server.pem`");
    fields.missing("keyPath", "for example `keyPath: server.key`");
    let certificate = file(&fields, "certPath");
    let key = file(&fields, "keyPath");
    let authorities = file(&fields, "caCertPath");
    let required = fields.flag("requireClientAuth").unwrap_or(false);
    if required && authorities.is_none() && fields.get("caCertPath").is_none() {
        let help = "`caCertPath` names the authorities whose certificates callers must show";
        fields.wrong("requireClientAuth", "client certificates of which authorities?", help);
    }
    let files = ServerFiles {
        certificate: certificate?,
        key: key?,
        intermediates: file(&fields, "intermediateCertsPath"),
        clients: match authorities {
            None => ClientAuth::Off,
            Some(path) if required => ClientAuth::Required(path),
            Some(path) => ClientAuth::Offered(path),
        },
        versions: versions(&fields),
    };
    let opportunistic = fields.choice("opportunistic", &LEVELS).unwrap_or_default();
    if required && opportunistic == TlsLevel::Desired {
        let help = "whoever goes on in clear shows none: write `opportunistic: required`, or leave it out for TLS from the \
                    first byte; or leave `requireClientAuth` out";
        fields.wrong("opportunistic", "callers could do without the certificate that is required", help);
    }
    if let Err(error) = files.check() {
        unusable(&fields, &error, "caCertPath");
    }
    Some(ListenerTls { files, opportunistic })
}

/// `tls` of an entry of `clients`; the inner none switches it off. `prefix` has captures that `commonName` may use.
pub(super) fn client(entry: &Fields<'_>, prefix: Option<&Pattern>) -> Option<Option<ClientTls>> {
    if entry.is_none("tls") {
        return Some(None);
    }
    let fields = entry.section_or_word("tls", &CLIENT, &none_or(&CLIENT))?;
    let validation = validation(&fields);
    if validation == Validation::On {
        fields.missing(
            "commonName",
            "services must show a certificate for it, such as `commonName: users.example.org`",
        );
    }
    let opportunistic = fields.choice("opportunistic", &LEVELS).unwrap_or_default();
    let name = common_name(&fields, prefix);
    let files = client_files(&fields, validation)?;
    Some(Some(ClientTls { files, name, opportunistic }))
}

/// Whether anybody looks at what a service shows. Where that is not known, nothing is said about what would be looked at.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Validation {
    On,
    Off,
    Unknown,
}

/// `disableValidation`.
pub(super) fn validation(fields: &Fields<'_>) -> Validation {
    match fields.flag("disableValidation") {
        Some(true) => Validation::Off,
        None if fields.get("disableValidation").is_some() => Validation::Unknown,
        _ => Validation::On,
    }
}

/// What TLS to a service is made of.
pub(super) fn client_files(fields: &Fields<'_>, validation: Validation) -> Option<ClientFiles> {
    let blind = validation == Validation::Off;
    let bundle = file(fields, "trustCertsBundle");
    if blind && bundle.is_some() {
        let help = "with `disableValidation: true` anybody is believed: leave one of the two out";
        fields.wrong("trustCertsBundle", "nobody would look at these authorities", help);
    }
    if validation == Validation::On {
        let help = "`trustCertsBundle` names the authorities that are believed (those of the system are not); \
                    `disableValidation: true` believes anybody";
        fields.missing("trustCertsBundle", help);
    }
    let versions = versions(fields);
    let (certificate, auth) = match fields.section("clientAuth", &CLIENT_AUTH) {
        Some(auth) => (Some(client_auth(&auth)?), Some(auth)),
        None => (None, None),
    };
    let trust = match bundle {
        Some(path) => Trust::Authorities(path),
        None if blind => Trust::Anybody,
        None => return None,
    };
    let files = ClientFiles { trust, certificate, versions };
    if let Err(error) = files.check() {
        match (error.role, &auth) {
            (Role::Certificate | Role::Key, Some(auth)) => unusable(auth, &error, "certPath"),
            _ => unusable(fields, &error, "trustCertsBundle"),
        }
    }
    Some(files)
}

fn client_auth(fields: &Fields<'_>) -> Option<(PathBuf, PathBuf)> {
    fields.missing("certPath", "for example `certPath: client.pem`");
    fields.missing("keyPath", "for example `keyPath: client.key`");
    Some((file(fields, "certPath")?, file(fields, "keyPath")?))
}

fn file(fields: &Fields<'_>, key: &str) -> Option<PathBuf> {
    fields.word(key).map(PathBuf::from)
}

fn common_name(fields: &Fields<'_>, prefix: Option<&Pattern>) -> Option<CommonName> {
    let text = fields.word("commonName")?;
    match CommonName::parse(text, prefix) {
        Ok(name) => Some(name),
        Err(why) => {
            let help = "a host's name or an address; `{x}` stands for what `{x}` in `prefix` matched, \
                        as in `prefix: /#/io.l5d.fs/{x}`";
            fields.wrong("commonName", why, help);
            None
        }
    }
}

fn versions(fields: &Fields<'_>) -> Versions {
    let help = "for example `protocols: [TLSv1.3]`";
    let Some(words) = fields.words("protocols", help) else { return Versions::All };
    let (mut old, mut new) = (false, false);
    for (index, word) in words.iter().enumerate() {
        match *word {
            "TLSv1.2" => old = true,
            "TLSv1.3" => new = true,
            other => fields.wrong_item(
                "protocols",
                index,
                format!("`{other}` is not spoken"),
                "there are TLSv1.2 and TLSv1.3; older ones are not safe",
            ),
        }
    }
    match (old, new) {
        (true, false) => Versions::Tls12,
        (false, true) => Versions::Tls13,
        (true, true) => Versions::All,
        (false, false) => {
            if words.is_empty() {
                fields.wrong("protocols", "without any version nobody could connect", help);
            }
            Versions::All
        }
    }
}

/// Notes a file that cannot be used at the key that names it.
fn unusable(fields: &Fields<'_>, error: &FileError, authorities: &str) {
    let (key, help) = match error.role {
        Role::Certificate => {
            ("certPath", "a PEM file with our certificate, and perhaps those of its issuers behind it")
        }
        Role::Key => {
            let help = "a PEM file, not encrypted, with the key of the first certificate in the file of `certPath`: \
                        ours comes first there, those of its issuers behind it";
            ("keyPath", help)
        }
        Role::Intermediates => ("intermediateCertsPath", "a PEM file with the certificates of our issuers"),
        Role::Authorities => {
            (authorities, "a PEM file with the certificates of the authorities that are believed")
        }
    };
    fields.wrong(key, error.to_string(), help);
}
