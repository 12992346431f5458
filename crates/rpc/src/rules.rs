//! What is settled about the calls of a port, and messages do not say themselves.

use crate::{Failure, Payload, Why};
use bytes::Bytes;
use muxgate_wire::thrift::Protocol;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Rules for the calls that come in at a port. Without any, every call goes through as it is.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    protocol: Option<Protocol>,
    oneways: Option<Arc<HashSet<Bytes>>>,
}

/// A call in the protocol that is not spoken at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongProtocol {
    /// The one that is spoken.
    pub wanted: Protocol,
}

impl fmt::Display for WrongProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.wanted {
            Protocol::Binary => "only the binary protocol is spoken here",
            Protocol::Compact => "only the compact protocol is spoken here",
        })
    }
}

impl From<WrongProtocol> for Failure {
    fn from(wrong: WrongProtocol) -> Self {
        Self::new(Why::BadRequest, wrong.to_string())
    }
}

impl Rules {
    /// Takes only calls in `protocol`, if there is one; those of the methods `oneways` get no reply, whatever the type of
    /// their message: senders before Apache Thrift 0.9.3 send oneway methods as ordinary calls (thriftmux spec, section
    /// 11.1). Of a multiplexed name (`Service:method`) the method alone counts too.
    pub fn new(protocol: Option<Protocol>, oneways: impl IntoIterator<Item = Bytes>) -> Self {
        let oneways: HashSet<Bytes> = oneways.into_iter().collect();
        Self { protocol, oneways: (!oneways.is_empty()).then(|| Arc::new(oneways)) }
    }

    /// Applies them to a call. What is not Thrift is left alone.
    ///
    /// # Errors
    /// A call in the other protocol.
    pub fn apply(&self, call: &mut Payload) -> Result<(), WrongProtocol> {
        if let Some(wanted) = self.protocol
            && call.head().is_some_and(|head| head.protocol != wanted)
        {
            return Err(WrongProtocol { wanted });
        }
        if let Some(oneways) = &self.oneways
            && is_among(oneways, call.method_bytes())
        {
            call.expect_no_reply();
        }
        Ok(())
    }
}

fn is_among(oneways: &HashSet<Bytes>, method: &[u8]) -> bool {
    let bare = method.splitn(2, |byte| *byte == b':').nth(1);
    oneways.contains(method) || bare.is_some_and(|bare| oneways.contains(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use muxgate_wire::thrift::{Form, Kind, write_head};

    fn call(form: Form, name: &str) -> Payload {
        let mut message = BytesMut::new();
        write_head(form, Kind::Call, name.as_bytes(), 1, &mut message);
        Payload::opaque(message.freeze())
    }

    #[test]
    fn named_methods_get_no_reply() {
        let rules = Rules::new(None, ["note", "A:tell"].map(Bytes::from));
        for (name, oneway) in [
            ("note", true),
            ("B:note", true),
            ("A:tell", true),
            ("tell", false),
            ("notes", false),
            ("", false),
        ] {
            for form in [Form::Strict, Form::Old, Form::Compact] {
                let mut call = call(form, name);
                assert_eq!(rules.apply(&mut call), Ok(()));
                assert_eq!(call.is_oneway(), oneway, "{name}");
            }
        }
        let mut opaque = Payload::opaque(Bytes::from_static(b"note"));
        assert_eq!(rules.apply(&mut opaque), Ok(()));
    }

    #[test]
    fn one_protocol_may_be_asked_for() {
        let rules = Rules::new(Some(Protocol::Compact), []);
        assert_eq!(rules.apply(&mut call(Form::Compact, "x")), Ok(()));
        let wrong = Err(WrongProtocol { wanted: Protocol::Compact });
        assert_eq!(rules.apply(&mut call(Form::Strict, "x")), wrong);
        assert_eq!(rules.apply(&mut call(Form::Old, "x")), wrong);
        assert_eq!(rules.apply(&mut Payload::opaque(Bytes::from_static(b"junk"))), Ok(()));
    }
}
