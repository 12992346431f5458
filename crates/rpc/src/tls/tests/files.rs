//! Files that cannot be used: which one, and why.

use super::*;
use rustls::pki_types::pem::PemObject;

fn wrong(files: &ServerFiles) -> (Role, String) {
    let error = files.check().unwrap_err();
    assert!(error.to_string().starts_with(&error.path.display().to_string()));
    (error.role, error.text)
}

#[test]
fn a_certificate_file_without_a_certificate_says_what_is_in_it() {
    let world = World::new();
    let at = |name: &str, text: &str| {
        let path = world.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        wrong(&ServerFiles { certificate: path, ..world.server_files() })
    };
    let key = std::fs::read_to_string(&world.server.key).unwrap();
    let none = "there is no certificate in it";
    assert_eq!(at("a", ""), (Role::Certificate, format!("{none}: it is empty")));
    assert_eq!(
        at("b", "hello"),
        (Role::Certificate, format!("{none}: it is not PEM (there is no line -----BEGIN ...-----)"))
    );
    assert_eq!(at("c", &key), (Role::Certificate, format!("{none}, but PRIVATE KEY")));
    let good = std::fs::read_to_string(&world.server.certificate).unwrap();
    let cut = &good[..good.len() - 30];
    assert_eq!(
        at("d", &format!("{good}{cut}")),
        (Role::Certificate, "block 2 is damaged: there is no line -----END CERTIFICATE-----".into())
    );
    let odd = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(at("e", odd), (Role::Certificate, "block 1 is not a certificate inside".into()));
    let odd = "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n";
    assert_eq!(at("f", odd), (Role::Certificate, "block 1 is damaged: it is not base64".into()));
    let long = " ".repeat(2 << 20);
    assert_eq!(at("g", &long), (Role::Certificate, "longer than 1048576 bytes".into()));
    let (role, text) = wrong(&ServerFiles { certificate: "nowhere.pem".into(), ..world.server_files() });
    assert_eq!(role, Role::Certificate);
    assert!(text.starts_with("cannot be read: No such file"), "{text}");
}

#[test]
fn a_key_must_be_one_and_of_the_certificate() {
    let world = World::new();
    let folder = world.folder.path();
    let with = |key: PathBuf| wrong(&ServerFiles { key, ..world.server_files() });
    let other = world.authority.issue("other", &[]).write(folder, "other");
    assert_eq!(with(other.key.clone()), (Role::Key, "the key does not belong to the certificate".into()));
    let certificate = world.server.certificate.clone();
    assert_eq!(with(certificate), (Role::Key, "there is no private key in it, but CERTIFICATE".into()));
    let path = folder.join("both.key");
    let both =
        std::fs::read_to_string(&world.server.key).unwrap() + &std::fs::read_to_string(&other.key).unwrap();
    std::fs::write(&path, both).unwrap();
    assert_eq!(with(path.clone()), (Role::Key, "there are 2 private keys in it, one is needed".into()));
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(&path, locked).unwrap();
    let words = "there is no private key in it: it is encrypted, and there is nobody to ask for its password";
    assert_eq!(with(path), (Role::Key, words.into()));
}

#[test]
fn our_own_certificate_must_hold_now() {
    let world = World::new();
    let issued = [
        (
            world.authority.issue_expired("old", &[]),
            "the certificate of CN=old has expired: it holds from Jan",
        ),
        (
            world.authority.issue_early("young", &[]),
            "the certificate of CN=young does not hold yet: it holds from",
        ),
    ];
    for (issued, words) in issued {
        let files = issued.write(world.folder.path(), "own");
        let (role, text) =
            wrong(&ServerFiles { certificate: files.certificate, key: files.key, ..world.server_files() });
        assert_eq!(role, Role::Certificate);
        assert!(text.starts_with(words) && text.contains(" to "), "{text}");
    }
}

#[test]
fn bundles_and_client_pairs_are_checked_too() {
    let world = World::new();
    let key = world.server.key.clone();
    let (role, text) =
        wrong(&ServerFiles { clients: ClientAuth::Required(key.clone()), ..world.server_files() });
    assert_eq!((role, &*text), (Role::Authorities, "there is no certificate in it, but PRIVATE KEY"));
    let (role, text) = wrong(&ServerFiles { intermediates: Some(key.clone()), ..world.server_files() });
    assert_eq!((role, &*text), (Role::Intermediates, "there is no certificate in it, but PRIVATE KEY"));
    let files = ClientFiles { trust: Trust::Authorities(key.clone()), ..world.client_files() };
    assert_eq!(files.check().unwrap_err().role, Role::Authorities);
    let pair = Some((world.bundle.clone(), key));
    let error = ClientFiles { certificate: pair, ..world.client_files() }.check().unwrap_err();
    assert_eq!((error.role, &*error.text), (Role::Key, "the key does not belong to the certificate"));
}

/// Inside a PKCS#8 key lies a SEC1 one: what stands in EC PRIVATE KEY blocks.
#[tokio::test]
async fn a_key_may_be_in_the_older_form() {
    let world = World::new();
    let pkcs8 = rustls::pki_types::PrivateKeyDer::from_pem_file(&world.server.key).unwrap();
    let der = pkcs8.secret_der();
    let at = der.windows(2).position(|bytes| bytes == [0x04, 0x6d]).expect("an octet string") + 2;
    let base64 = |bytes: &[u8]| {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digits = bytes.chunks(3).flat_map(|three| {
            let word =
                three.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
            (0..4).map(move |at| match at <= three.len() {
                true => DIGITS[(word >> (18 - 6 * at)) as usize & 63] as char,
                false => '=',
            })
        });
        digits.collect::<String>()
    };
    let text =
        format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n", base64(&der[at..]));
    let path = world.folder.path().join("sec1.key");
    std::fs::write(&path, text).unwrap();
    let server = server(ServerFiles { key: path, ..world.server_files() });
    let (accepted, connected) = meet(&server, &client(world.client_files(), "web.example.org")).await;
    assert!(accepted.is_ok() && connected.is_ok());
}

/// Opening a pipe waits for whoever writes into it.
#[test]
fn only_regular_files_are_opened() {
    let world = World::new();
    let pipe = pipe(world.folder.path());
    let link = world.folder.path().join("link");
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    let at = |certificate: PathBuf| wrong(&ServerFiles { certificate, ..world.server_files() });
    let words = |what: &str| (Role::Certificate, format!("is {what}, and must be a regular file"));
    assert_eq!(at(pipe.clone()), words("a named pipe"));
    assert_eq!(at(link.clone()), words("a named pipe"));
    assert_eq!(at(world.folder.path().into()), words("a folder"));
    assert_eq!(at("/dev/zero".into()), words("a device"));
    let files = ClientFiles { trust: Trust::Authorities(pipe), ..world.client_files() };
    assert_eq!(files.check().unwrap_err().text, "is a named pipe, and must be a regular file");
    // A link to a regular file is as good as the file.
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&world.server.certificate, &link).unwrap();
    assert!(ServerFiles { certificate: link, ..world.server_files() }.check().is_ok());
}

/// Made by openssl: what we issue in other tests is never so odd.
fn odd(world: &World, certificate: &str, key: &str) -> ServerFiles {
    let at = |name: &str, text: &str| {
        let path = world.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    ServerFiles { certificate: at("odd.pem", certificate), key: at("odd.key", key), ..world.server_files() }
}

#[test]
fn a_certificate_of_version_1_is_called_so() {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    let world = World::new();
    let files = odd(&world, include_str!("odd/v1.pem"), include_str!("odd/v1.key"));
    let (role, text) = wrong(&files);
    assert_eq!(role, Role::Certificate);
    let words = "the certificate of CN=v1 is X.509 version 1, and must be version 3 with a subjectAltName: ";
    assert!(text.starts_with(words) && text.ends_with("-extfile"), "{text}");

    // A peer's.
    let content = crate::tls::files::Content::read(Role::Authorities, &world.bundle).unwrap();
    let roots = Arc::new(content.authorities().unwrap());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build().unwrap();
    let shown = rustls::pki_types::CertificateDer::from_pem_file(&files.certificate).unwrap();
    let name = ServerName::try_from("web.example.org").unwrap();
    let now = rustls::pki_types::UnixTime::now();
    let error = verifier.verify_server_cert(&shown, &[], &name, &[], now).unwrap_err();
    let told = TlsError::of_tls(&error, None);
    assert_eq!(told.cause(), Cause::BadCertificate);
    assert!(told.to_string().starts_with("it is not X.509 version 3 (version 1 has no"), "{told}");
}

#[test]
fn keys_of_kinds_that_are_not_taken_say_which_are() {
    let world = World::new();
    let cases = [
        (include_str!("odd/rsa1024.pem"), include_str!("odd/rsa1024.key"), "RSA of 1024 bits"),
        (include_str!("odd/p521.pem"), include_str!("odd/p521.key"), "ECDSA on P-521"),
    ];
    for (certificate, key, kind) in cases {
        let (role, text) = wrong(&odd(&world, certificate, key));
        assert_eq!(role, Role::Key);
        let words = format!(
            "the key cannot be used: it is damaged or of a kind that is not taken (the certificate is for {kind}); \
             taken are RSA of 2048 to 4096 bits, ECDSA on P-256 or P-384, and Ed25519"
        );
        assert_eq!(text, words);
    }
}

#[test]
fn names_of_errors_become_sentences() {
    use rustls::{CertificateError, OtherError};
    let other =
        |name: &str| CertificateError::Other(OtherError(Arc::new(std::io::Error::other(name.to_owned()))));
    for (error, words) in [
        (other("NameConstraintViolation"), "it is no good: name constraint violation"),
        (other("UnsupportedThing { a: 1 }"), "it is no good: unsupported thing"),
        (CertificateError::BadEncoding, "it is no good: bad encoding"),
        (other(""), ""),
    ] {
        assert_eq!(error::in_words(&error), words);
    }
}
