//! The forms on both sides, and how the configuration asks for them.

use muxgate_testkit::link::Dialect;
use muxgate_testkit::speaker::{Form, Security};
use muxgate_testkit::thrift::Protocol;
use std::path::Path;

/// What a caller speaks: a row.
pub struct Inbound {
    pub name: &'static str,
    pub form: Form,
}

/// What a service is spoken to in: a column.
pub struct Outbound {
    pub name: &'static str,
    pub dialect: Dialect,
    /// None: that of the call.
    pub protocol: Option<Protocol>,
    pub tls: bool,
    pub lz4: bool,
}

use Protocol::{Binary, Compact, Old};

/// All rows.
pub fn inbound() -> Vec<Inbound> {
    let row = |name, form| Inbound { name, form };
    vec![
        row("framed", Form::new(Dialect::Framed, Binary)),
        row("framed old", Form::new(Dialect::Framed, Old)),
        row("framed compact", Form::new(Dialect::Framed, Compact)),
        row("buffered", Form::new(Dialect::Buffered, Binary)),
        row("buffered old", Form::new(Dialect::Buffered, Old)),
        row("buffered compact", Form::new(Dialect::Buffered, Compact)),
        row("header", Form::new(Dialect::Header, Binary)),
        row("header compact", Form::new(Dialect::Header, Compact)),
        row("header zlib", Form { zlib: true, ..Form::new(Dialect::Header, Binary) }),
        row("ttwitter", Form::new(Dialect::TTwitter, Binary)),
        row("mux", Form::new(Dialect::Mux, Binary)),
        row("mux compact", Form::new(Dialect::Mux, Compact)),
        row("mux treq", Form { treq: true, ..Form::new(Dialect::Mux, Binary) }),
    ]
}

/// All columns.
pub fn outbound() -> Vec<Outbound> {
    let transports = [
        ("framed", Dialect::Framed, false, false),
        ("buffered", Dialect::Buffered, false, false),
        ("header", Dialect::Header, false, false),
        ("ttwitter", Dialect::TTwitter, false, false),
        ("thriftmux", Dialect::Mux, false, false),
    ];
    let columns = |(name, dialect, tls, lz4)| {
        [None, Some(Binary), Some(Compact)].map(|protocol| Outbound { name, dialect, protocol, tls, lz4 })
    };
    transports.into_iter().flat_map(columns).collect()
}

/// As the configuration calls it.
fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Framed => "framed",
        Dialect::Buffered => "buffered",
        Dialect::Header => "header",
        Dialect::TTwitter => "ttwitter",
        Dialect::Mux => "thriftmux",
    }
}

impl Inbound {
    /// The keys of the listener that belong to the form; certificates lie in `folder`. What a caller speaks is said only if
    /// `is_named`, or if it cannot be detected.
    pub fn keys(&self, folder: &Path, is_named: bool) -> String {
        let folder = folder.display();
        let mut keys = match self.form.security {
            Security::Clear => String::new(),
            Security::Tls => format!("tls: {{certPath: {folder}/cert.pem, keyPath: {folder}/key.pem}}, "),
            Security::Opportunistic => format!(
                "tls: {{certPath: {folder}/cert.pem, keyPath: {folder}/key.pem, opportunistic: required}}, "
            ),
        };
        if is_named || (self.form.dialect, self.form.protocol) == (Dialect::Buffered, Old) {
            let protocol = if self.form.protocol == Compact { "compact" } else { "binary" };
            let dialect = match self.form.dialect {
                // It begins with a framed call.
                Dialect::TTwitter => Dialect::Framed,
                other => other,
            };
            keys += &format!("protocol: {}, thriftProtocol: {protocol}, ", name(dialect));
        }
        if self.form.lz4 {
            keys += "compression: accepted, ";
        }
        keys
    }

    pub fn is_mux(&self) -> bool {
        self.form.dialect == Dialect::Mux
    }
}

impl Outbound {
    /// The keys of the client that belong to the form.
    pub fn keys(&self, folder: &Path) -> String {
        let folder = folder.display();
        let mut keys = format!("protocol: {}, ", name(self.dialect));
        match self.protocol {
            None => {}
            Some(Compact) => keys += "thriftProtocol: compact, ",
            Some(_) => keys += "thriftProtocol: binary, ",
        }
        if self.tls {
            keys += &format!("tls: {{commonName: localhost, trustCertsBundle: {folder}/ca.pem}}, ");
        }
        if self.lz4 {
            keys += "compression: desired, ";
        }
        keys
    }

    /// What the service is to receive a call in.
    pub fn protocol_of(&self, inbound: &Inbound) -> Protocol {
        self.protocol.unwrap_or(inbound.form.protocol)
    }

    pub fn is_mux(&self) -> bool {
        self.dialect == Dialect::Mux
    }

    /// The second line of the table's head.
    pub fn short(&self) -> &'static str {
        match self.protocol {
            None => "same",
            Some(Compact) => "cmp",
            Some(_) => "bin",
        }
    }
}
