//! Speaks the protocol of the service to it, and the caller's own to the caller (thriftmux spec, sections 17 and 18).
//!
//! In comes a call in any form; out goes one in the service's protocol, its name without the multiplexed service where that
//! is asked for. The reply comes back in the caller's exact form, sequence id included; its name is left as it came. Built
//! only where a setting asks for it: other endpoints do not know of it.

use muxgate_rpc::{Failure, Payload, Request, Response, Serve, Status, Why};
use muxgate_wire::thrift::{Form, MessageHead, Protocol, ThriftError, peek, translate};

/// What is changed on the way to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The protocol of the service; none leaves it as it is.
    protocol: Option<Protocol>,
    /// Takes the service's part off names.
    strip_service: bool,
    /// Largest message that is made, in bytes.
    limit: usize,
}

impl Translation {
    /// None if nothing is to be changed.
    pub fn of(params: &super::Params) -> Option<Self> {
        let (protocol, strip_service) = (params.protocol, params.strip_service);
        let is_needed = protocol.is_some() || strip_service;
        is_needed.then_some(Self { protocol, strip_service, limit: params.max_frame })
    }

    /// The call for the service; none if it can go as it is.
    fn call(&self, call: &Payload) -> Result<Option<Payload>, ThriftError> {
        // What is not Thrift cannot be translated. Sessions that carry nothing else refuse it.
        let Some(head) = call.head() else { return Ok(None) };
        // Old binary becomes strict where binary is asked for: strict readers refuse it.
        let form = self.protocol.map_or_else(|| head.form(), Form::from);
        let method = call.method_bytes();
        let name = if self.strip_service { without_service(method) } else { method };
        if form == head.form() && name.len() == method.len() {
            return Ok(None);
        }
        let message = translate::renamed(call.bytes(), head, form, name, self.limit)?;
        Payload::thrift(message.freeze()).map(Some)
    }

    /// The reply for the caller.
    fn reply(&self, response: &mut Response, form: Form) -> Result<(), ThriftError> {
        let body = &response.body;
        if body.is_empty() {
            return Ok(());
        }
        let head = peek(body)?;
        if head.form() != form {
            response.body = translate::message(body, &head, form, self.limit)?.freeze();
        }
        Ok(())
    }
}

/// What stands behind the first colon, if there is one.
fn without_service(method: &[u8]) -> &[u8] {
    let behind = method.iter().position(|byte| *byte == b':').and_then(|colon| method.get(colon + 1..));
    behind.unwrap_or(method)
}

/// Translates for one endpoint.
pub struct Translated<S> {
    translation: Translation,
    inner: S,
}

impl<S> Translated<S> {
    /// Translates what goes to `inner` and comes back from it.
    pub fn new(translation: Translation, inner: S) -> Self {
        Self { translation, inner }
    }
}

impl<S: Serve> Serve for Translated<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let translated = self.translation.call(&request.body).map_err(|error| {
            Failure::new(
                Why::BadRequest,
                format!("the call cannot be put into the service's protocol: {error}"),
            )
        })?;
        let Some(translated) = translated else { return self.inner.call(request).await };
        let form = request.body.head().map(MessageHead::form);
        let lent = Lent::new(request, translated);
        let mut response = self.inner.call(lent.request).await?;
        drop(lent);
        if let Some(form) = form {
            self.translation.reply(&mut response, form).map_err(|error| {
                Failure::new(
                    Why::BadReply,
                    format!("the reply cannot be put into the caller's protocol: {error}"),
                )
            })?;
        }
        Ok(response)
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}

/// A request with another body, which has its own again afterwards, also when the attempt is cut off.
struct Lent<'a> {
    request: &'a mut Request,
    body: Payload,
}

impl<'a> Lent<'a> {
    fn new(request: &'a mut Request, body: Payload) -> Self {
        let body = std::mem::replace(&mut request.body, body);
        Self { request, body }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        std::mem::swap(&mut self.request.body, &mut self.body);
    }
}

#[cfg(test)]
mod tests;
