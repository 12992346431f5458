//! Who is believed, and what is said of those who are not.

use super::*;
use crate::link::{Link, told};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What a client reads whose certificate is refused after its part of the handshake.
async fn last_words(connected: Connected) -> String {
    told(connected.unwrap().read(&mut [0]).await.unwrap_err()).to_string()
}

#[tokio::test]
async fn a_client_that_knows_the_authority_and_the_name_is_served() {
    let world = World::new();
    let server = server(world.server_files());
    for name in ["web.example.org", "127.0.0.1"] {
        let (accepted, connected) = meet(&server, &client(world.client_files(), name)).await;
        let (mut theirs, identity) = accepted.unwrap();
        let mut ours = connected.unwrap();
        assert_eq!(identity, None);
        theirs.write_all(b"hello").await.unwrap();
        theirs.flush().await.unwrap();
        let mut read = [0; 5];
        ours.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello");
    }
}

#[tokio::test]
async fn sessions_are_resumed_and_keep_the_identity() {
    let world = World::new();
    let files = ServerFiles { clients: ClientAuth::Required(world.bundle.clone()), ..world.server_files() };
    let server = server(files);
    let shown = world.authority.issue("caller", &["spiffe://example.org/caller"]);
    let client = client(world.client_showing(shown.write(world.folder.path(), "client")), "web.example.org");
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let (accepted, connected) = meet(&server, &client).await;
        let (mut theirs, identity) = accepted.unwrap();
        let mut ours = connected.unwrap();
        let identity = identity.expect("an identity");
        assert_eq!(
            (&*identity.subject, &*identity.names),
            ("CN=caller", &["spiffe://example.org/caller".into()][..])
        );
        // Tickets come behind the handshake.
        theirs.write_all(b"x").await.unwrap();
        theirs.flush().await.unwrap();
        ours.read_exact(&mut [0]).await.unwrap();
        kinds.push(ours.get_ref().1.handshake_kind());
    }
    assert_eq!(kinds, [Some(rustls::HandshakeKind::Full), Some(rustls::HandshakeKind::Resumed)]);
}

#[tokio::test]
async fn a_client_certificate_is_asked_for_as_set() {
    let world = World::new();
    let other = Authority::new("Somebody Else");
    let folder = world.folder.path();
    let good =
        world.client_showing(world.authority.issue("good", &["good.example.org"]).write(folder, "good"));
    let stranger = world.client_showing(other.issue("stranger", &[]).write(folder, "stranger"));
    let none = world.client_files();
    let required =
        server(ServerFiles { clients: ClientAuth::Required(world.bundle.clone()), ..world.server_files() });
    let offered =
        server(ServerFiles { clients: ClientAuth::Offered(world.bundle.clone()), ..world.server_files() });
    let who = |accepted: Accepted| accepted.map(|(_, who)| who.map(|who| who.to_string()));

    for server in [&required, &offered] {
        let (accepted, _) = meet(server, &client(good.clone(), "web.example.org")).await;
        assert_eq!(who(accepted).unwrap().as_deref(), Some("CN=good"));

        let (accepted, connected) = meet(server, &client(stranger.clone(), "web.example.org")).await;
        let error = accepted.unwrap_err();
        assert_eq!((error.cause(), error.subject()), (Cause::UnknownIssuer, Some("CN=stranger")));
        let text = error.to_string();
        assert!(text.contains("CN=stranger") && text.contains("issued by CN=Somebody Else"), "{text}");
        assert!(text.ends_with("ca.pem"), "{text}");
        // With TLS 1.3 the client learns it afterwards.
        let said = last_words(connected).await;
        assert!(said.contains("it does not know the issuer of our certificate"), "{said}");
    }
    let (accepted, _) = meet(&offered, &client(none.clone(), "web.example.org")).await;
    assert_eq!(who(accepted).unwrap(), None);
    let (accepted, connected) = meet(&required, &client(none, "web.example.org")).await;
    let error = accepted.unwrap_err();
    assert_eq!(
        (error.cause(), &*error.to_string()),
        (Cause::NoCertificate, "the peer showed no certificate, and must")
    );
    let said = last_words(connected).await;
    assert!(said.contains("it wants a certificate from us"), "{said}");
}

#[tokio::test]
async fn a_certificate_for_other_names_is_refused_by_name() {
    let world = World::new();
    let (accepted, connected) =
        meet(&server(world.server_files()), &client(world.client_files(), "api.example.org")).await;
    let error = connected.unwrap_err();
    assert_eq!((error.cause(), error.file()), (Cause::Name, None));
    assert_eq!(
        error.to_string(),
        "the certificate of CN=web is refused: it is not for api.example.org, it has web.example.org, 127.0.0.1"
    );
    assert_eq!(accepted.unwrap_err().cause(), Cause::Refused);
}

#[tokio::test]
async fn what_is_no_name_is_never_asked_for() {
    let world = World::new();
    let (_, connected) = meet(&server(world.server_files()), &client(world.client_files(), "a b")).await;
    let error = connected.unwrap_err();
    assert_eq!((error.cause(), &*error.to_string()), (Cause::Name, "`a b` cannot be the name of a server"));
}

#[tokio::test]
async fn a_common_name_is_no_name() {
    let world = World::new();
    let bare = world.authority.issue("web.example.org", &[]).write(world.folder.path(), "bare");
    let files = ServerFiles { certificate: bare.certificate, key: bare.key, ..world.server_files() };
    let (_, connected) = meet(&server(files), &client(world.client_files(), "web.example.org")).await;
    let text = connected.unwrap_err().to_string();
    assert!(text.contains("no names (alternative names count, not the common name)"), "{text}");
}

#[tokio::test]
async fn a_server_of_an_unknown_issuer_is_refused_unless_nothing_is_checked() {
    let world = World::new();
    let other = Authority::new("Other Authority");
    let folder = world.folder.path();
    let files =
        ClientFiles { trust: Trust::Authorities(other.write(folder, "other")), ..world.client_files() };
    let server = server(world.server_files());
    let (_, connected) = meet(&server, &client(files, "web.example.org")).await;
    let error = connected.unwrap_err();
    assert_eq!((error.cause(), error.subject()), (Cause::UnknownIssuer, Some("CN=web")));
    assert!(error.to_string().contains("issued by CN=Test Authority"), "{error}");
    assert!(error.file().is_some_and(|file| file.ends_with("other.pem")));

    let files = ClientFiles { trust: Trust::Anybody, ..world.client_files() };
    let nameless = ClientTls::start(files, LOOK_EVERY, Arc::new(())).unwrap();
    let (accepted, connected) = meet(&server, &nameless).await;
    assert!(connected.is_ok());
    assert_eq!(accepted.unwrap().0.get_ref().1.server_name(), None);
}

#[tokio::test]
async fn callers_with_expired_early_or_unfit_certificates_are_refused() {
    let world = World::new();
    let required =
        server(ServerFiles { clients: ClientAuth::Required(world.bundle.clone()), ..world.server_files() });
    let issued = [
        (world.authority.issue_expired("old", &[]), Cause::Expired, "it has expired (it holds from Jan  1"),
        (
            world.authority.issue_early("young", &[]),
            Cause::NotYetValid,
            "it does not hold yet (it holds from",
        ),
        (world.authority.issue_for_servers("server", &[]), Cause::BadCertificate, "for another purpose"),
    ];
    for (issued, cause, words) in issued {
        let side = muxgate_testkit::tunnel::ClientSide::new(world.authority.pem(), "web.example.org");
        let connector = side.showing(&issued).connector();
        let (left, right) = tokio::io::duplex(64 << 10);
        let name = ServerName::try_from("web.example.org").unwrap();
        let (accepted, _) = tokio::join!(required.accept(left), connector.connect(name, right));
        let error = accepted.unwrap_err();
        assert_eq!(error.cause(), cause, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn peers_without_a_version_in_common_part() {
    let world = World::new();
    let server = server(ServerFiles { versions: Versions::Tls13, ..world.server_files() });
    let files = ClientFiles { versions: Versions::Tls12, ..world.client_files() };
    let (accepted, connected) = meet(&server, &client(files, "web.example.org")).await;
    let error = accepted.unwrap_err();
    assert_eq!(error.cause(), Cause::NothingInCommon);
    assert!(error.to_string().starts_with("no common version of TLS"), "{error}");
    assert!(connected.unwrap_err().to_string().contains("it speaks no version of TLS that we do"));
}

#[tokio::test]
async fn what_is_not_tls_is_called_so() {
    let world = World::new();
    let (server, client) = (server(world.server_files()), client(world.client_files(), "web.example.org"));
    let call: &[u8] = b"\0\0\0\x11\x80\x01\0\x01\0\0\0\x04ping\0\0\0\x01\0";
    let (left, mut right) = tokio::io::duplex(4096);
    right.write_all(call).await.unwrap();
    assert_eq!(server.accept(left).await.unwrap_err().cause(), Cause::NotTls);

    let (left, mut right) = tokio::io::duplex(4096);
    right.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let error = client.connect(left).await.unwrap_err();
    assert_eq!((error.cause(), &*error.to_string()), (Cause::NotTls, "the peer does not speak TLS"));

    let (left, right) = tokio::io::duplex(4096);
    drop(right);
    assert_eq!(server.accept(left).await.unwrap_err().cause(), Cause::Closed);
}

/// More than fits is written, nothing is read meanwhile, and all of it comes through: what TLS holds back is flushed.
#[tokio::test]
async fn a_link_flushes_and_says_that_it_ends() {
    let world = World::new();
    let (server, client) = (server(world.server_files()), client(world.client_files(), "web.example.org"));
    let (left, right) = tokio::io::duplex(16 << 10);
    let (accepted, connected) =
        tokio::join!(Link::accept(left, bytes::Bytes::new(), &server), Link::connect(right, &client));
    let ((mut theirs, _), mut ours) = (accepted.unwrap(), connected.unwrap());
    let mut sent = bytes::Bytes::from(vec![7; 300_000]);
    let write = async {
        crate::io::write_all(&mut theirs, &mut sent).await.unwrap();
        theirs.shutdown().await.unwrap();
    };
    let mut read = Vec::new();
    let (_, end) = tokio::join!(write, ours.read_to_end(&mut read));
    assert_eq!(end.unwrap(), 300_000);

    let (left, right) = tokio::io::duplex(64 << 10);
    let (accepted, connected) =
        tokio::join!(Link::accept(left, bytes::Bytes::new(), &server), Link::connect(right, &client));
    drop(accepted.unwrap());
    // Without the close_notify this would be an error: somebody may have cut it off.
    assert_eq!(connected.unwrap().read(&mut [0]).await.unwrap(), 0);
}
