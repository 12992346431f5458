//! `store`: the table that is followed.

use super::{Fields, Shape, remote};
use crate::names::table::{MAX_NAMESPACE, MAX_STORES, Params};
use crate::outside::http;

const SHAPE: Shape = Shape {
    what: "`store`",
    keys: &["addresses", "namespace", "tokenFile", "tls"],
    strangers: &[
        ("address", "write `addresses`, a list"),
        ("dst", "write `addresses: [http://127.0.0.1:4180]`"),
        ("token", "write `tokenFile`, a file that holds it"),
    ],
};

/// The table that is asked for if none is named.
const NAMESPACE: &str = "default";

const EXAMPLE: &str = "for example `addresses: [http://127.0.0.1:4180]`";

/// The stores; the inner none means that there are none.
pub(super) fn store(root: &Fields<'_>) -> Option<Option<Params>> {
    if root.get("store").is_none() {
        return Some(None);
    }
    let fields = root.section("store", &SHAPE)?;
    fields.missing("addresses", EXAMPLE);
    let namespace = if fields.get("namespace").is_some() { fields.word("namespace")? } else { NAMESPACE };
    if !is_namespace(namespace) {
        fields.wrong(
            "namespace",
            format!("`{namespace}` cannot be the name of a table"),
            format!("letters, digits, `_`, `-` and `.`, at most {MAX_NAMESPACE}"),
        );
    }
    let credentials = remote::token_file(&fields)?;
    let words = fields.words("addresses", EXAMPLE)?;
    if !(1..=MAX_STORES).contains(&words.len()) {
        let what = if words.is_empty() { "has no address of a store" } else { "has too many" };
        fields.wrong("addresses", format!("`addresses` {what}"), format!("{EXAMPLE}, at most {MAX_STORES}"));
        return None;
    }
    let mut stores = Vec::new();
    for (at, address) in words.iter().enumerate() {
        let Some((https, host)) = parts(address) else {
            let help = "write http://HOST:PORT, or https://HOST:PORT and `tls`";
            fields.wrong_item("addresses", at, format!("`{address}` is no address of a store"), help);
            continue;
        };
        if https != fields.get("tls").is_some() {
            let help = if https {
                "https needs `tls`: whom do we believe?"
            } else {
                "`tls` goes with https:// addresses"
            };
            fields.wrong_item("addresses", at, format!("`{address}` does not go with `tls`"), help);
            continue;
        }
        let tls = remote::encrypted(&fields, &host)?;
        let base = address.trim_end_matches('/').to_owned();
        stores.push(http::Params { base, tls, credentials: credentials.clone() });
    }
    let whole = stores.len() == words.len() && is_namespace(namespace);
    whole.then(|| Some(Params { stores, namespace: namespace.into() }))
}

/// The stores of the command line.
///
/// # Errors
/// What is wrong with them, for people.
pub(in crate::config) fn of_flags(addresses: &[String], namespace: Option<&str>) -> Result<Params, String> {
    let namespace = namespace.unwrap_or(NAMESPACE);
    if !is_namespace(namespace) {
        return Err(format!("--namespace: `{namespace}` cannot be the name of a table"));
    }
    if addresses.len() > MAX_STORES {
        return Err(format!("--store: at most {MAX_STORES} addresses"));
    }
    let store = |address: &String| match parts(address) {
        Some((false, _)) => Ok(http::Params {
            base: address.trim_end_matches('/').to_owned(),
            tls: None,
            credentials: http::Credentials::None,
        }),
        Some((true, _)) => {
            Err(format!("--store {address}: with TLS, write `store` and its `tls` into the file"))
        }
        None => Err(format!("--store {address}: want http://HOST:PORT")),
    };
    let stores = addresses.iter().map(store).collect::<Result<_, _>>()?;
    Ok(Params { stores, namespace: namespace.into() })
}

/// Whether an address is encrypted, and its host.
fn parts(address: &str) -> Option<(bool, String)> {
    let uri: ::http::Uri = address.parse().ok()?;
    let host = uri.host().filter(|host| !host.is_empty())?;
    let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let https = match uri.scheme_str()? {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    bare.then(|| (https, host.trim_matches(['[', ']']).to_owned()))
}

fn is_namespace(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=MAX_NAMESPACE).contains(&text.len()) && text.chars().all(allowed) && !matches!(text, "." | "..")
}
