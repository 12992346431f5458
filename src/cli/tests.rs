use super::*;
use clap::CommandFactory;

fn flags(args: &[&str]) -> Result<flags::Flags, String> {
    let args = ["muxgate", "run"].into_iter().chain(args.iter().copied());
    match Cli::try_parse_from(args).map_err(|error| error.to_string())?.command {
        Command::Run(args) => Ok(args.flags),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn flags_are_the_file_that_is_printed() {
    let few = ["--listen", "127.0.0.1:4114", "--dtab", "/svc => /$/inet/127.0.0.1/9000"];
    let many = [
        "--listen",
        "[::1]:0",
        "--dtab",
        "  /host => /#/io.l5d.fs ;\n\n /svc => /host | /host/fallback # why\n",
        "--fs",
        "a \"folder\": #1",
        "--upstream",
        "framed",
        "--admin",
        "none",
        "--zipkin",
        "http://127.0.0.1:9411",
    ];
    for args in [&few[..], &many[..]] {
        let text = flags(args).map(|flags| flags.file(&flags::Store::default()));
        let text = text.as_deref().unwrap_or_else(|error| error);
        let said = config::parse("<flags>", text)
            .map_or_else(|report| report.to_string(), |plan| check::summary(&plan));
        assert!(said.starts_with("<flags>: ok\n  listens on "), "{text}\n{said}");
    }
}

#[test]
fn flags_say_what_they_say() -> Result<(), String> {
    let args = [
        "--listen",
        "127.0.0.1:4114",
        "--dtab",
        "/svc => /#/io.l5d.fs",
        "--fs",
        "disco",
        "--upstream",
        "ttwitter",
    ];
    let plan = config::parse("<flags>", &flags(&args)?.file(&flags::Store::default()))
        .map_err(|report| report.to_string())?;
    let same = config::parse(
        "<flags>",
        "namers: [{kind: io.l5d.fs, rootDir: disco}]\ndtab: /svc => /#/io.l5d.fs\nlisteners: [{port: 4114}]\nclients: [{protocol: ttwitter}]\n",
    );
    let same = same.map_err(|report| report.to_string())?;
    assert_eq!(check::summary(&plan), check::summary(&same));
    let id = muxgate_wire::name::Path::parse("/#/io.l5d.fs/users").map_err(|error| error.to_string())?;
    assert_eq!(plan.client(&id), same.client(&id));
    assert_eq!(plan.listeners(), same.listeners());
    Ok(())
}

#[test]
fn a_store_stands_for_the_table_or_below_it() -> Result<(), String> {
    let parsed = |more: &[&str]| -> Result<Plan, String> {
        let args = ["muxgate", "run", "--listen", "127.0.0.1:0"].into_iter().chain(more.iter().copied());
        match Cli::try_parse_from(args).map_err(|error| error.to_string())?.command {
            Command::Run(args) => args.flags.plan(&args.store).map(|(plan, _)| plan),
            other => Err(format!("{other:?}")),
        }
    };
    let plan = parsed(&["--store", "http://a:1", "--store", "http://b:2", "--namespace", "shop"])?;
    let said = check::summary(&plan);
    assert!(said.contains("  follows the table shop of http://a:1 or http://b:2\n"), "{said}");
    let plan = parsed(&["--store", "http://a:1", "--dtab", "/svc => /x"])?;
    let said = check::summary(&plan);
    assert!(said.contains("the table default of http://a:1; over it\n  /svc => /x\n"), "{said}");
    for (wrong, said) in [
        (&[][..], "required"),
        (&["--namespace", "x", "--dtab", "/a => /b"], "--store"),
        (&["--store", "a:1"], "--> --store, written as a file:"),
    ] {
        let refused = parsed(wrong).map(|plan| check::summary(&plan));
        assert!(refused.as_ref().is_err_and(|why| why.contains(said)), "{refused:?}");
    }
    Ok(())
}

#[test]
fn a_dtab_with_odd_characters_is_refused_in_its_own_words() -> Result<(), String> {
    let text = flags(&["--listen", "127.0.0.1:1", "--dtab", "/svc => \u{1}"])?.file(&flags::Store::default());
    let said = config::parse("<flags>", &text).map_or_else(|report| report.to_string(), |_| String::new());
    assert!(said.contains("dtab: expected a path"), "{said}");
    Ok(())
}

#[test]
fn a_mistake_in_a_flag_names_the_flag() -> Result<(), String> {
    for (more, said) in [
        (&["--dtab", "/svc = /x"][..], &["--> --dtab, written as a file:", "expected =>"][..]),
        (&["--dtab", "/svc => /#/io.l5d.fs"], &["--> --dtab, written", "`--fs DIR` is the namer"]),
        (&["--dtab", "/svc => /x", "--zipkin", "x"], &["--> --zipkin, written as a file:"]),
    ] {
        let args = [&["--listen", "127.0.0.1:1"], more].concat();
        let report = flags(&args)?.plan(&flags::Store::default()).err().unwrap_or_default();
        assert!(said.iter().all(|text| report.contains(text)), "{report}");
    }
    Ok(())
}

#[test]
fn names_that_lead_nowhere_are_doubted() -> Result<(), String> {
    let listener =
        "listeners: [{name: in, port: 4114, dst: /x}]\nnamers: [{kind: io.l5d.fs, rootDir: /dev/null}]\n";
    for (dtab, said) in [
        ("/svc => /a ; /a => /svc", "too deep"),
        ("/other => /#/io.l5d.fs", "no such name: /svc/x"),
        ("/svc => /$/nobody", "no such system namer"),
        ("/svc => /$/inet/127.0.0.1/9", ""),
        ("/svc => /#/io.l5d.fs", ""),
        ("/svc => /#/io.l5d.fs | /nowhere", ""),
    ] {
        let plan =
            config::parse("-", &format!("{listener}dtab: {dtab}\n")).map_err(|report| report.to_string())?;
        let doubts: Vec<_> = check::doubts(&plan).lines().map(str::to_owned).collect();
        assert!(doubts[0].contains("/dev/null is not a folder"), "{doubts:?}");
        assert_eq!(
            doubts.get(1).map(|doubt| doubt.contains(said)),
            (!said.is_empty()).then_some(true),
            "{doubts:?}"
        );
    }
    Ok(())
}

#[test]
fn wrong_flags_are_refused() {
    for args in [
        &["gate.yaml", "--listen", "127.0.0.1:1", "--dtab", ""][..],
        &["--listen", "127.0.0.1:1"],
        &["--listen", "localhost", "--dtab", ""],
        &["--listen", "127.0.0.1:1", "--dtab", "", "--upstream", "http"],
        &[],
    ] {
        assert!(flags(args).is_err(), "{args:?}");
    }
}

/// The whole demo in this process: services, gateway, load, drain. Every reply is compared with what its service answers.
#[test]
fn the_demo_runs_through_the_gateway() {
    let demo =
        Cli::try_parse_from(["muxgate", "demo", "--admin", "127.0.0.1:0", "--seconds", "1", "--rate", "100"]);
    let done = demo.map(|cli| match cli.command {
        Command::Demo(args) => play::demo(args).is_ok(),
        _ => false,
    });
    assert!(matches!(done, Ok(true)));
}

#[test]
fn the_end_does_not_wait_for_a_thread_that_sits_somewhere() {
    for threads in [1, 2] {
        let (let_go, held) = std::sync::mpsc::channel::<()>();
        let done = on_runtime(threads, async move {
            let (began, begun) = tokio::sync::oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let _ = began.send(());
                held.recv()
            });
            begun.await.map_err(failed)
        });
        assert!(done.is_ok(), "{threads}");
        // It would never come so far.
        drop(let_go);
    }
}
