//! Rights: who may read and change which namespaces, and which entries of them.

use super::refusal::Refusal;
use crate::config::plan::{Proof, Right};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use muxgate_rpc::tls::Identity;
use muxgate_wire::name::{Dentry, Dtab, Prefix};
use ring::digest::{SHA256, digest};
use std::sync::Arc;

/// All rights. If there are none, whoever reaches the port may do everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights(Vec<Arc<Right>>);

/// The rights of one caller; none: no right is asked for.
#[derive(Clone, Debug)]
pub(super) struct Granted(Option<Vec<Arc<Right>>>);

/// A change that wants a right.
pub(super) struct Change<'a> {
    pub namespace: &'a str,
    /// The table that it changes, as it is stored.
    pub before: Option<&'a str>,
    /// What it becomes; none: it is deleted.
    pub after: Option<&'a Dtab>,
}

impl Rights {
    pub(super) fn new(rights: Vec<Right>) -> Self {
        Self(rights.into_iter().map(Arc::new).collect())
    }

    /// Whether anybody may do anything.
    pub(super) fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// What a caller may.
    ///
    /// # Errors
    /// 401 if rights are asked for, and it has none.
    pub(super) async fn granted(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
    ) -> Result<Granted, Refusal> {
        if self.is_open() {
            return Ok(Granted(None));
        }
        let shown = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        let token = shown.and_then(bearer).map(|token| digest(&SHA256, token));
        let token = token.as_ref().map(|token| token.as_ref());
        let mut granted = Vec::new();
        for right in &self.0 {
            if proves(&right.proof, token, identity).await {
                granted.push(Arc::clone(right));
            }
        }
        if !granted.is_empty() {
            return Ok(Granted(Some(granted)));
        }
        let said = match (token, identity) {
            (Some(_), _) => "no right is for this token".to_owned(),
            (None, Some(identity)) => {
                format!("no right is for the certificate of {identity}, and there is no token")
            }
            (None, None) => "send `Authorization: Bearer TOKEN`, or show a certificate".to_owned(),
        };
        Err(Refusal(StatusCode::UNAUTHORIZED, said))
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

async fn proves(proof: &Proof, token: Option<&[u8]>, identity: Option<&Identity>) -> bool {
    match proof {
        Proof::TokenSha256(wanted) => token.is_some_and(|token| same(token, wanted)),
        Proof::TokenFile(path) => {
            let Some(token) = token else { return false };
            match tokio::fs::read(path).await {
                Ok(wanted) if wanted.trim_ascii().is_empty() => false,
                Ok(wanted) => same(token, digest(&SHA256, wanted.trim_ascii()).as_ref()),
                Err(error) => {
                    tracing::error!(file = %path.display(), %error, "a token cannot be read");
                    false
                }
            }
        }
        Proof::Certificate(wanted) => identity.is_some_and(|identity| is(identity, wanted)),
    }
}

/// Compares digests in a time that says nothing about them.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Whether a certificate has this subject, common name or alternative name.
fn is(identity: &Identity, wanted: &str) -> bool {
    let common = |part: &str| part.trim().strip_prefix("CN=").is_some_and(|name| name == wanted);
    identity.subject == wanted
        || identity.names.iter().any(|name| name == wanted)
        || identity.subject.split(',').any(common)
}

impl Granted {
    /// # Errors
    /// If no right has the namespace.
    pub(super) fn read(&self, namespace: &str) -> Result<(), Refusal> {
        let Some(rights) = &self.0 else { return Ok(()) };
        match rights.iter().any(|right| has(right, namespace)) {
            true => Ok(()),
            false => Err(Refusal(StatusCode::FORBIDDEN, outside(rights, namespace))),
        }
    }

    /// The name of the right that allows a change, and whether it looked at the table before; no name if none is asked for.
    ///
    /// # Errors
    /// Why the last of the rights does not allow it.
    pub(super) fn change(&self, change: &Change<'_>) -> Result<(Option<&str>, bool), Refusal> {
        let Some(rights) = &self.0 else { return Ok((None, false)) };
        let mut why = outside(rights, change.namespace);
        for right in rights.iter().filter(|right| has(right, change.namespace)) {
            match allows(right, change) {
                Ok(()) => return Ok((Some(&right.name), !right.prefixes.is_empty())),
                Err(said) => why = said,
            }
        }
        Err(Refusal(StatusCode::FORBIDDEN, why))
    }
}

fn outside(rights: &[Arc<Right>], namespace: &str) -> String {
    let names: Vec<_> = rights.iter().map(|right| format!("`{}`", right.name)).collect();
    format!("the namespace `{namespace}` is not among those of {}", names.join(", "))
}

fn has(right: &Right, namespace: &str) -> bool {
    right.namespaces.iter().any(|pattern| fits(pattern.as_bytes(), namespace.as_bytes()))
}

/// `*` stands for any characters. Both are short.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut p, mut star) = (0, 0, None);
    while at < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, at));
            p += 1;
        } else if pattern.get(p) == name.get(at) {
            (p, at) = (p + 1, at + 1);
        } else if let Some((back, taken)) = star {
            star = Some((back, taken + 1));
            (p, at) = (back + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

fn allows(right: &Right, change: &Change<'_>) -> Result<(), String> {
    let name = &right.name;
    if !right.write {
        return Err(format!("the right `{name}` is for reading only"));
    }
    if right.prefixes.is_empty() {
        return Ok(());
    }
    let before = match change.before.map(Dtab::parse).transpose() {
        Ok(before) => before.unwrap_or_default(),
        Err(_) => {
            return Err(format!("the right `{name}` is for some entries, and what is stored is no dtab"));
        }
    };
    let empty = Dtab::empty();
    let after = change.after.unwrap_or(&empty);
    let others = |dtab: &'_ Dtab| -> Vec<Dentry> {
        dtab.entries()
            .iter()
            .filter(|entry| !right.prefixes.iter().any(|own| below(&entry.prefix, own)))
            .cloned()
            .collect()
    };
    let (before, after) = (others(&before), others(after));
    let first = before.iter().zip(&after).position(|(a, b)| a != b).unwrap_or(before.len().min(after.len()));
    let own: Vec<_> = right.prefixes.iter().map(Prefix::as_str).collect();
    let own = own.join(", ");
    match (before.get(first), after.get(first)) {
        (None, None) => Ok(()),
        (Some(was), None) => Err(format!("the right `{name}` is for {own}: it may not take away `{was}`")),
        (None, Some(now)) => Err(format!("the right `{name}` is for {own}: it may not add `{now}`")),
        (Some(was), Some(now)) => {
            Err(format!("the right `{name}` is for {own}: it may not put `{now}` in the place of `{was}`"))
        }
    }
}

/// Whether all paths that a prefix matches are matched by `own` as well.
fn below(prefix: &Prefix, own: &Prefix) -> bool {
    let mut elements = prefix.as_str().split('/').skip(1);
    let mut own = own.as_str().split('/').skip(1).filter(|element| !element.is_empty());
    own.all(|own| elements.next().is_some_and(|element| own == "*" || element == own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(prefixes: &[&str], write: bool) -> Right {
        Right {
            name: "team".into(),
            proof: Proof::Certificate("team.example.org".into()),
            namespaces: vec!["team-*".into(), "shared".into()],
            prefixes: prefixes.iter().map(|prefix| Prefix::parse(prefix).unwrap()).collect(),
            write,
        }
    }

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, want) in [
            ("*", "a", true),
            ("a*", "a", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*-x-*", "a-x-x-b", true),
            ("a", "b", false),
            ("", "a", false),
            ("a*b*c", "aXbXbXc", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), want, "{pattern} {name}");
        }
    }

    #[test]
    fn entries_of_others_stay_as_they_are() {
        let right = right(&["/svc/team", "/x/*/y"], true);
        let check = |before: &str, after: Option<&str>| {
            let after = after.map(|text| Dtab::parse(text).unwrap());
            allows(&right, &Change { namespace: "shared", before: Some(before), after: after.as_ref() })
        };
        let others = "/a=>/b;/svc=>/c";
        assert_eq!(check(others, Some("/svc/team=>/n;/a=>/b;/svc/team/x=>/m;/svc=>/c;/x/q/y/z=>/o")), Ok(()));
        assert_eq!(check("/a=>/b;/svc/team=>/n;/svc=>/c", Some(others)), Ok(()));
        let told = |after| check(others, after).unwrap_err();
        assert!(told(Some("/svc=>/c;/a=>/b")).contains("`/svc=>/c` in the place of `/a=>/b`"));
        assert!(told(Some("/a=>/b;/svc=>/c;/svc/*=>/d")).contains("may not add `/svc/*=>/d`"));
        assert!(told(Some("/a=>/b;/svc=>/c;/svc/teams=>/d")).contains("add"));
        assert!(told(None).contains("may not take away `/a=>/b`"));
        assert_eq!(check("/svc/team=>/b", None), Ok(()));
        assert!(check("nonsense", Some("")).unwrap_err().contains("no dtab"));
    }

    #[test]
    fn rights_have_namespaces_and_a_way() {
        let granted = Granted(Some(vec![Arc::new(right(&[], false))]));
        assert_eq!(granted.read("team-a"), Ok(()));
        let change = |namespace| Change { namespace, before: None, after: None };
        assert!(granted.change(&change("shared")).unwrap_err().1.contains("reading only"));
        assert!(granted.read("other").unwrap_err().1.contains("not among those of `team`"));
        assert!(Granted(None).change(&change("any")).is_ok());
    }

    #[tokio::test]
    async fn tokens_and_certificates_prove_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "from-a-file\n").unwrap();
        let hash: [u8; 32] = digest(&SHA256, b"hashed").as_ref().try_into().unwrap();
        let of = |name: &str, proof| Right { name: name.into(), proof, ..right(&[], true) };
        let rights = Rights::new(vec![
            of("file", Proof::TokenFile(file.clone())),
            of("hash", Proof::TokenSha256(hash)),
            of("cert", Proof::Certificate("team.example.org".into())),
        ]);
        let ask = async |token: Option<&str>, identity: Option<&Identity>| {
            let mut headers = HeaderMap::new();
            if let Some(token) = token {
                headers.insert(AUTHORIZATION, format!("bearer {token}").parse().unwrap());
            }
            let granted = rights.granted(&headers, identity).await.map_err(|refusal| refusal.0.as_u16());
            granted
                .map(|granted| granted.0.unwrap().iter().map(|right| right.name.clone()).collect::<Vec<_>>())
        };
        let of_subject = |subject: &str| Identity { subject: subject.into(), names: vec![] };
        assert_eq!(ask(Some("from-a-file"), None).await, Ok(vec!["file".into()]));
        assert_eq!(ask(Some("hashed"), None).await, Ok(vec!["hash".into()]));
        assert_eq!(ask(Some("other"), None).await, Err(401));
        assert_eq!(ask(None, None).await, Err(401));
        assert_eq!(ask(None, Some(&of_subject("O=X, CN=team.example.org"))).await, Ok(vec!["cert".into()]));
        assert_eq!(ask(None, Some(&of_subject("CN=team.example.orgs"))).await, Err(401));
        std::fs::write(&file, "\n").unwrap();
        assert_eq!(ask(Some(""), None).await, Err(401));
    }
}
