//! Certificates for tests: an authority, and what it issues, as PEM files (keys in PKCS#8).

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};

/// An authority that issues certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// What is issued to one peer.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key, in PKCS#8.
    pub key: String,
}

/// Where an [`Issued`] was written.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Authority {
    /// An authority with a key of its own, whatever others are called.
    pub fn new(name: &str) -> Self {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { pem: certificate.pem(), issuer: Issuer::new(params, key) }
    }

    /// Its certificate: the bundle that believes what it issues.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Writes its certificate.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        write(folder, &format!("{name}.pem"), &self.pem)
    }

    /// A certificate for a server and a client at once: a common name, and alternative names (DNS, IP, or a URI).
    pub fn issue(&self, common_name: &str, names: &[&str]) -> Issued {
        self.sign(params(common_name, names))
    }

    /// A certificate that held in 2020 only.
    pub fn issue_expired(&self, common_name: &str, names: &[&str]) -> Issued {
        let mut params = params(common_name, names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(params)
    }

    /// A certificate that holds from 4000 on.
    pub fn issue_early(&self, common_name: &str, names: &[&str]) -> Issued {
        let mut params = params(common_name, names);
        params.not_before = date_time_ymd(4000, 1, 1);
        params.not_after = date_time_ymd(4001, 1, 1);
        self.sign(params)
    }

    /// A certificate that is good for servers alone.
    pub fn issue_for_servers(&self, common_name: &str, names: &[&str]) -> Issued {
        let mut params = params(common_name, names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Issued {
    /// Writes both, as `NAME.pem` and `NAME.key`, over what was there.
    pub fn write(&self, folder: &Path, name: &str) -> Files {
        Files {
            certificate: write(folder, &format!("{name}.pem"), &self.certificate),
            key: write(folder, &format!("{name}.key"), &self.key),
        }
    }
}

fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let (uris, names): (Vec<&str>, Vec<&str>) = names.iter().copied().partition(|name| name.contains("://"));
    let names: Vec<_> = names.into_iter().map(String::from).collect();
    let mut params = CertificateParams::new(names).expect("names");
    let uris = uris.into_iter().map(|uri| rcgen::SanType::URI(uri.try_into().expect("a URI")));
    params.subject_alt_names.extend(uris);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

/// Writes beside and renames, as whoever replaces certificates of a running process should.
fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (path, beside) = (folder.join(name), folder.join(format!(".{name}.new")));
    fs::write(&beside, text).expect("written");
    fs::rename(&beside, &path).expect("renamed");
    path
}
