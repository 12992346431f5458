//! Certificates and keys in PEM files.

use super::error::why;
use super::identity::Identity;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject, SectionKind};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use std::fmt;
use std::fs::{FileType, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Longest file that is read, in bytes: a bundle of all the authorities that browsers know has a quarter of it.
pub(super) const MAX_FILE: u64 = 1 << 20;

/// Of the kernel's interface, where it is certain to have this value; elsewhere opening may wait in spite of all.
const O_NONBLOCK: i32 = match cfg!(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)) {
    true => 0o4000,
    false => 0,
};

/// What it is, if it is no regular file. Links have been followed.
fn irregular(kind: &FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a folder"),
        kind if kind.is_fifo() => Some("a named pipe"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Our certificate, and perhaps those of its issuers behind it.
    Certificate,
    /// The key of our certificate.
    Key,
    /// Certificates of the issuers of ours.
    Intermediates,
    /// The authorities whose certificates are believed.
    Authorities,
}

/// A file that cannot be used: which, what for, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// What it is for.
    pub role: Role,
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.text)
    }
}

impl std::error::Error for FileError {}

/// A file and what was in it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) role: Role,
    pub(super) path: PathBuf,
    bytes: Vec<u8>,
}

impl Content {
    pub(super) fn read(role: Role, path: &Path) -> Result<Self, FileError> {
        let mut content = Self { role, path: path.to_path_buf(), bytes: Vec::new() };
        // Asked before it is opened: opening a pipe waits for whoever writes into it, for ever if need be.
        let kind = std::fs::metadata(path).map(|metadata| metadata.file_type());
        if let Some(what) = kind.as_ref().ok().and_then(irregular) {
            return Err(content.wrong(format!("is {what}, and must be a regular file")));
        }
        // If it has become a pipe since, opening it does not wait either, and nothing is found in it.
        let read = kind
            .and_then(|_| OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path))
            .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut content.bytes));
        match read {
            Ok(read) if read as u64 > MAX_FILE => Err(content.wrong(format!("longer than {MAX_FILE} bytes"))),
            Ok(_) => Ok(content),
            Err(error) => Err(content.wrong(format!("cannot be read: {error}"))),
        }
    }

    pub(super) fn wrong(&self, text: impl Into<String>) -> FileError {
        FileError { role: self.role, path: self.path.clone(), text: text.into() }
    }

    /// All blocks of kinds that are known; the error counts them.
    fn blocks(&self) -> Result<Vec<(SectionKind, Vec<u8>)>, FileError> {
        let mut blocks = Vec::new();
        for block in <(SectionKind, Vec<u8>)>::pem_slice_iter(&self.bytes) {
            let block = block.map_err(|error| {
                self.wrong(format!("block {} is damaged: {}", blocks.len() + 1, damage(&error)))
            })?;
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// The certificates, in order; one at least.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, FileError> {
        let blocks = self.blocks()?;
        let mut found = Vec::new();
        for (at, (kind, der)) in blocks.into_iter().enumerate() {
            if kind != SectionKind::Certificate {
                continue;
            }
            if X509Certificate::from_der(&der).is_err() {
                return Err(self.wrong(format!("block {} is not a certificate inside", at + 1)));
            }
            found.push(CertificateDer::from(der));
        }
        if found.is_empty() {
            return Err(self.wrong(format!("there is no certificate in it{}", self.instead())));
        }
        Ok(found)
    }

    /// The one private key: PKCS#8, PKCS#1 or SEC1.
    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, FileError> {
        let mut keys = self.blocks()?.into_iter().filter_map(|(kind, der)| match kind {
            SectionKind::PrivateKey => Some(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der))),
            SectionKind::RsaPrivateKey => Some(PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(der))),
            SectionKind::EcPrivateKey => Some(PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(der))),
            _ => None,
        });
        let Some(key) = keys.next() else {
            return Err(self.wrong(format!("there is no private key in it{}", self.instead())));
        };
        match keys.count() {
            0 => Ok(key),
            more => Err(self.wrong(format!("there are {} private keys in it, one is needed", more + 1))),
        }
    }

    /// A bundle of authorities.
    pub(super) fn authorities(&self) -> Result<RootCertStore, FileError> {
        let mut store = RootCertStore::empty();
        for (at, certificate) in self.certificates()?.into_iter().enumerate() {
            let subject = Identity::read(&certificate).map_or_else(String::new, |who| format!(" ({who})"));
            store.add(certificate).map_err(|error| {
                self.wrong(format!("certificate {}{subject} cannot be an authority: {}", at + 1, why(&error)))
            })?;
        }
        Ok(store)
    }

    /// What stands there in place of what was looked for.
    fn instead(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        if text.contains("ENCRYPTED") {
            return ": it is encrypted, and there is nobody to ask for its password".into();
        }
        let kinds: Vec<_> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
            .take(MAX_TOLD)
            .collect();
        match (kinds.is_empty(), self.bytes.is_empty()) {
            (_, true) => ": it is empty".into(),
            (true, false) => ": it is not PEM (there is no line -----BEGIN ...-----)".into(),
            (false, false) => format!(", but {}", kinds.join(", ")),
        }
    }
}

/// Kinds of blocks that an error names, at most.
const MAX_TOLD: usize = 5;

fn damage(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            let kind = String::from_utf8_lossy(end_marker);
            let kind = kind.trim().trim_start_matches("-----END ").trim_end_matches('-');
            format!("there is no line -----END {kind}-----")
        }
        pem::Error::IllegalSectionStart { .. } => "its first line is no -----BEGIN ...-----".into(),
        pem::Error::Base64Decode(_) => "it is not base64".into(),
        other => other.to_string(),
    }
}
