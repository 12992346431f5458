//! The messages of the demo: one method a service, `string METHOD(1: i64 id)`, in strict binary Thrift.

use bytes::Bytes;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TInputProtocol, TMessageIdentifier,
    TMessageType, TOutputProtocol, TStructIdentifier, TType,
};
use thrift::{ApplicationError, ApplicationErrorKind, TConfiguration};

/// A call as a service reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub method: String,
    pub seqid: i32,
    pub id: i64,
}

/// What a service answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Result(String),
    /// A TApplicationException.
    Exception(String),
}

impl Call {
    pub fn write(&self) -> thrift::Result<Bytes> {
        message(&self.method, TMessageType::Call, self.seqid, |out| {
            out.write_struct_begin(&TStructIdentifier::new("args"))?;
            out.write_field_begin(&TFieldIdentifier::new("id", TType::I64, 1))?;
            out.write_i64(self.id)?;
            out.write_field_end()?;
            end_of_struct(out)
        })
    }

    pub fn read(bytes: &[u8]) -> thrift::Result<Self> {
        let mut from = reader(bytes)?;
        let head = from.read_message_begin()?;
        let mut id = None;
        fields(&mut from, |from, field| match (field.id, field.field_type) {
            (Some(1), TType::I64) => from.read_i64().map(|value| id = Some(value)),
            _ => from.skip(field.field_type),
        })?;
        let id = id.ok_or_else(|| broken("the call has no id"))?;
        Ok(Self { method: head.name, seqid: head.sequence_number, id })
    }

    /// The reply to this call.
    pub fn answer(&self, outcome: &Outcome) -> thrift::Result<Bytes> {
        match outcome {
            Outcome::Result(text) => message(&self.method, TMessageType::Reply, self.seqid, |out| {
                out.write_struct_begin(&TStructIdentifier::new("result"))?;
                out.write_field_begin(&TFieldIdentifier::new("success", TType::String, 0))?;
                out.write_string(text)?;
                out.write_field_end()?;
                end_of_struct(out)
            }),
            Outcome::Exception(text) => message(&self.method, TMessageType::Exception, self.seqid, |out| {
                let error = ApplicationError::new(ApplicationErrorKind::InternalError, text.clone());
                thrift::Error::write_application_error_to_out_protocol(&error, out)
            }),
        }
    }
}

impl Outcome {
    /// Reads a reply: the sequence id, and what was answered.
    pub fn read(bytes: &[u8]) -> thrift::Result<(i32, Self)> {
        let mut from = reader(bytes)?;
        let head = from.read_message_begin()?;
        if head.message_type == TMessageType::Exception {
            let error = thrift::Error::read_application_error_from_in_protocol(&mut from)?;
            return Ok((head.sequence_number, Self::Exception(error.message)));
        }
        let mut text = None;
        fields(&mut from, |from, field| match (field.id, field.field_type) {
            (Some(0), TType::String) => from.read_string().map(|value| text = Some(value)),
            _ => from.skip(field.field_type),
        })?;
        let text = text.ok_or_else(|| broken("the reply has no result"))?;
        Ok((head.sequence_number, Self::Result(text)))
    }
}

/// Nothing in a message can be larger than the message: the library's own limits would let a few bytes reserve gigabytes.
fn reader(bytes: &[u8]) -> thrift::Result<TBinaryInputProtocol<&[u8]>> {
    let all = Some(bytes.len());
    let limits = TConfiguration::builder().max_message_size(all).max_frame_size(all);
    let limits = limits.max_container_size(all).max_string_size(all).build()?;
    Ok(TBinaryInputProtocol::with_config(bytes, true, limits))
}

fn fields<T: TInputProtocol>(
    from: &mut T,
    mut each: impl FnMut(&mut T, TFieldIdentifier) -> thrift::Result<()>,
) -> thrift::Result<()> {
    from.read_struct_begin()?;
    loop {
        let field = from.read_field_begin()?;
        if field.field_type == TType::Stop {
            return from.read_struct_end();
        }
        each(from, field)?;
        from.read_field_end()?;
    }
}

fn message(
    method: &str,
    kind: TMessageType,
    seqid: i32,
    body: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> thrift::Result<Bytes> {
    let mut bytes = Vec::new();
    let mut out = TBinaryOutputProtocol::new(&mut bytes, true);
    out.write_message_begin(&TMessageIdentifier::new(method, kind, seqid))?;
    body(&mut out)?;
    out.write_message_end()?;
    Ok(bytes.into())
}

fn end_of_struct(out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
    out.write_field_stop()?;
    out.write_struct_end()
}

fn broken(text: &str) -> thrift::Error {
    ApplicationError::new(ApplicationErrorKind::ProtocolError, text).into()
}
