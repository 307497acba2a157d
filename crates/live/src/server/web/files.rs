//! The files of the page.

/// A file of the page, and its media type.
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";

macro_rules! file {
    ($path:literal, $kind:expr, $from:literal) => {
        File { path: $path, kind: $kind, text: include_str!($from) }
    };
}

const FILES: [File; 12] = [
    file!("/", HTML, "page/index.html"),
    file!("/page.css", CSS, "page/page.css"),
    file!("/page.js", SCRIPT, "page/page.js"),
    file!("/channel.js", SCRIPT, "page/channel.js"),
    file!("/drawing.js", SCRIPT, "page/drawing.js"),
    file!("/words.js", SCRIPT, "page/words.js"),
    file!("/probe.js", SCRIPT, "page/probe.js"),
    file!("/load.js", SCRIPT, "page/load.js"),
    file!("/icon.svg", "image/svg+xml", "page/icon.svg"),
    file!("/texts/en.json", JSON, "texts/en.json"),
    file!("/texts/pt.json", JSON, "texts/pt.json"),
    file!("/texts/zh.json", JSON, "texts/zh.json"),
];

/// The file with this path.
pub(super) fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn texts(path: &str) -> serde_json::Map<String, serde_json::Value> {
        serde_json::from_str(find(path).unwrap().text).unwrap()
    }

    /// The names in braces, which the page replaces.
    fn places(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
    }

    #[test]
    fn every_language_has_every_text_with_the_same_places() {
        let english = texts("/texts/en.json");
        for path in ["/texts/pt.json", "/texts/zh.json"] {
            let other = texts(path);
            let (keys, others): (BTreeSet<_>, BTreeSet<_>) = (english.keys().collect(), other.keys().collect());
            assert_eq!(keys, others, "{path}");
            for (key, text) in &english {
                let (text, translated) = (text.as_str().unwrap(), other[key].as_str().unwrap());
                assert!(!translated.is_empty(), "{path}: {key}");
                assert_eq!(places(text), places(translated), "{path}: {key}");
            }
        }
    }

    #[test]
    fn every_text_is_used_and_every_used_text_exists() {
        let english = texts("/texts/en.json");
        let html = find("/").unwrap().text;
        let scripts = ["/page.js", "/channel.js", "/drawing.js", "/words.js", "/probe.js", "/load.js"]
            .map(|path| find(path).unwrap().text);
        let sources = format!("{html}{}", scripts.concat());
        let used: BTreeSet<&str> = sources.split(['"', '\'', '`']).collect();
        let unused: Vec<_> = english.keys().filter(|key| !used.contains(key.as_str())).collect();
        assert!(unused.is_empty(), "{unused:?}");
        for (at, _) in html.match_indices("data-text=\"") {
            let key = html[at + 11..].split('"').next().unwrap();
            assert!(english.contains_key(key), "{key}");
        }
    }

    #[test]
    fn nothing_of_the_page_comes_from_elsewhere() {
        for file in &FILES {
            let elsewhere = ["http://", "https://", "//cdn", "import(", "eval(", "innerHTML", " style=\"", "onclick="];
            for word in elsewhere {
                let text = file.text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(word), "{} has {word}", file.path);
            }
        }
    }
}
