//! Names.
/// A path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(bytes::Bytes);
impl Path {
    /// Text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("/")
    }
}
