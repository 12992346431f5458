//! HTML text: escaping, and the frame of every page.

use std::fmt::{self, Display, Write};

/// Outside input inside HTML text or a quoted attribute.
pub struct Esc<T>(pub T);

impl<T: Display> Display for Esc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl Write for Escaping<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.chars().try_for_each(|c| match c {
                    '&' => self.0.write_str("&amp;"),
                    '<' => self.0.write_str("&lt;"),
                    '>' => self.0.write_str("&gt;"),
                    '"' => self.0.write_str("&quot;"),
                    '\'' => self.0.write_str("&#39;"),
                    c => self.0.write_char(c),
                })
            }
        }
        write!(Escaping(f), "{}", self.0)
    }
}

/// A whole page: `body` is HTML.
pub fn page(title: &str, here: &str, body: &str) -> String {
    const LINKS: [(&str, &str); 5] = [
        ("/", "Routes"),
        ("/traces", "Traces"),
        ("/names", "Names"),
        ("/metrics", "Metrics"),
        ("/config", "Configuration"),
    ];
    let links = LINKS.map(|(to, text)| {
        let current = if to == here { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{to}\"{current}>{text}</a>")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - muxgate</title>\n<link rel=\"stylesheet\" href=\"/web/style.css\">\n</head>\n<body>\n\
         <header><strong>muxgate</strong><nav>{}</nav></header>\n<main>\n{body}</main>\n</body>\n</html>\n",
        Esc(title),
        links.concat(),
    )
}

/// A time span for people: 3 digits at most.
pub fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", three(us as f64 / 1e3)),
        1_000_000..120_000_000 => format!("{} s", three(us as f64 / 1e6)),
        _ => format!("{} min", us / 60_000_000),
    }
}

fn three(value: f64) -> String {
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        assert_eq!(Esc("<a b='c'>&\"").to_string(), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;");
    }

    #[test]
    fn times_have_three_digits() {
        let texts = [999, 1_234, 12_345, 999_400, 1_500_000, 600_000_000].map(micros);
        assert_eq!(texts, ["999 µs", "1.23 ms", "12.3 ms", "999 ms", "1.50 s", "10 min"]);
    }
}
