//! Promises about the search in titles and messages.

use super::prelude::*;

const OWNER: &str = "key:ann";

fn key(thread: &str) -> ThreadKey {
    ThreadKey { owner: OWNER.into(), id: thread.into() }
}

async fn said(store: &DynStore, thread: &str, question: &str, answer: &str) {
    let run = run(thread, &format!("r{question}")).of(OWNER).with([user(question)]);
    run.ended(store, end_at(NOW).with([assistant(answer)])).await;
}

async fn found(store: &DynStore, query: &str) -> String {
    listed(store, OWNER, changed(ThreadPage::first(99), |it| it.query = Some(query.to_owned())))
        .await
}

async fn renamed(store: &DynStore, thread: &str, title: Option<&str>) {
    let thread = view(store, &key(thread)).await.unwrap().thread;
    let version = ThreadVersion::of(&thread);
    let update = changed(ThreadUpdate::default(), |it| it.title = Some(title));
    assert!(store.update(version, &update).await.unwrap());
}

pub(super) async fn threads_are_found_by_what_was_said_in_any_script(store: DynStore) {
    said(&store, "a", "What's the Weather like in BEIJING?", "Sunny, 25 °C \0 tomorrow.").await;
    said(&store, "b", "今天北京的天气怎么样?", "北京今天晴朗,最高25度。").await;
    said(&store, "c", "Order 4711: where is it", "It's on its way to Straße 5. Wie schön!").await;
    run("d", "r").of("key:bob").with([user("weather 北京")]).begun(&store).await;
    for (query, expected) in [
        ("weather", "a"),
        ("WEATH", "a"),
        ("beijing weather", "a"),
        ("weather sunny", ""),
        ("sunny tomorrow", "a"),
        ("天气", "b"),
        ("晴", "b"),
        ("北京的天气", "b"),
        ("北京", "b"),
        ("晴朗", "b"),
        ("天气 北京", "b"),
        ("京北", ""),
        ("气今", ""),
        ("晴朗,最高25度", "b"),
        ("度", "b"),
        ("25", "ba"),
        ("4711", "c"),
        ("schön straße", "c"),
        ("SCHÖN", "c"),
        ("assistant", ""),
        ("on its way", "c"),
        ("nothing", ""),
        ("100%", ""),
    ] {
        assert_eq!(found(&store, query).await, expected, "{query}");
    }
    for hostile in [
        "\"",
        "*",
        "a OR b",
        "NEAR(a b)",
        "words : x",
        "'; --",
        "%",
        "_",
        "\\",
        "\0",
        "-",
        "^a",
        "{",
        "a\" OR \"b",
    ] {
        found(&store, hostile).await;
    }
}

pub(super) async fn a_text_is_found_in_each_form_that_unicode_has_for_it(store: DynStore) {
    let texts = [
        ("a", "Le café de Zoë", "caf\u{e9}"),
        ("b", "İstanbul'da ISPARTA ve ısı", "nothing"),
        ("c", "ฉันชอบกินข้าวผัดทุกวัน", "ที่นี่"),
        ("d", "ខ្ញុំស្រលាញ់ភាសាខ្មែរ", "nothing"),
        ("e", "ຂ້ອຍມັກພາສາລາວ", "nothing"),
        ("f", "မြန်မာဘာသာစကား", "nothing"),
        ("g", "오늘 한국어를 배워요", "nothing"),
        ("h", "हिन्दी में लिखो", "ＦＵＬＬ ｗｉｄｔｈ"),
    ];
    for (thread, question, answer) in texts {
        said(&store, thread, question, answer).await;
    }
    renamed(&store, "h", Some("Der Schluß")).await;
    for (query, expected) in [
        ("cafe\u{301}", "a"),
        ("CAFÉ zoe", "a"),
        ("istanbul", "b"),
        ("İSTANBUL", "b"),
        ("ısparta", "b"),
        ("ISI", "b"),
        ("ข้าวผัด", "c"),
        ("ข้าว", "c"),
        ("ขาว", ""),
        ("ที่", "c"),
        ("ภาสาขึ", ""),
        ("ភាសា", "d"),
        ("ខ្មែរ", "d"),
        ("ພາສາ", "e"),
        ("ဘာသာ", "f"),
        ("한국어", "g"),
        // As macOS writes names of files.
        ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}", "g"),
        ("국어", "g"),
        ("हिन्दी", "h"),
        ("हिन्द", "h"),
        ("full WIDTH", "h"),
        ("schluss", "h"),
    ] {
        assert_eq!(found(&store, query).await, expected, "{query}");
    }
}

pub(super) async fn long_words_are_found_by_their_beginning(store: DynStore) {
    said(&store, "a", &"ü".repeat(9000), &format!("x{}", "ab".repeat(4000))).await;
    said(&store, "b", "ü", &"天".repeat(3000)).await;
    for (query, expected) in
        [("ü".repeat(200), "a"), (format!("x{}", "ab".repeat(90)), "a"), ("天".repeat(200), "b")]
    {
        assert_eq!(found(&store, &query).await, expected);
    }
}

pub(super) async fn a_search_finds_what_is_stored_now(store: DynStore) {
    said(&store, "a", "apples", "pears").await;
    said(&store, "b", "apples", "plums").await;
    assert_eq!(
        (found(&store, "apples").await, found(&store, "plums").await),
        ("ba".into(), "b".into())
    );
    said(&store, "a", "grapes", "apricots").await;
    assert_eq!(
        (found(&store, "apples").await, found(&store, "grapes").await),
        ("ab".into(), "a".into())
    );
    renamed(&store, "b", Some("Fruit salad")).await;
    assert_eq!(found(&store, "salad fruit").await, "b");
    renamed(&store, "b", Some("Vegetables")).await;
    assert_eq!(
        (found(&store, "salad").await, found(&store, "vegetables").await),
        (String::new(), "b".into())
    );
    renamed(&store, "b", None).await;
    assert_eq!(found(&store, "vegetables").await, "");

    let updated = vec![(1, Message::user("apples", "bananas"))];
    TestRun { updated, ..run("a", "update").of(OWNER) }.ended(&store, end_at(NOW)).await;
    assert_eq!(
        (found(&store, "apples").await, found(&store, "bananas").await),
        ("b".into(), "a".into())
    );

    let number = view(&store, &key("b")).await.unwrap().thread.number;
    assert!(store.delete(number).await.unwrap());
    assert_eq!(found(&store, "apples").await, "");
    said(&store, "b", "cherries", "apples").await;
    assert_eq!(
        (found(&store, "apples").await, found(&store, "plums").await),
        ("b".into(), String::new())
    );
}

pub(super) async fn found_threads_are_paged_and_filtered_like_all_others(store: DynStore) {
    for n in 0..9 {
        said(&store, &n.to_string(), "apples", "pears").await;
    }
    let mut page = changed(ThreadPage::first(4), |it| it.query = Some("apples".to_owned()));
    let mut pages = Vec::new();
    loop {
        let found = store.threads(OWNER, &page).await.unwrap();
        let Some(last) = found.last() else { break };
        page.after = Some(last.run);
        pages.push(names(&found));
    }
    assert_eq!(pages, ["8765", "4321", "0"]);
    for page in [
        changed(page.clone(), |it| {
            it.archived = Some(true);
            it.after = None;
        }),
        changed(page.clone(), |it| {
            it.agent = Some("other".to_owned());
            it.after = None;
        }),
    ] {
        assert!(store.threads(OWNER, &page).await.unwrap().is_empty());
    }
    assert!(
        store.threads("key:bob", &changed(page, |it| it.after = None)).await.unwrap().is_empty()
    );
}

pub(super) async fn many_matches_in_one_thread_hide_no_other_thread(store: DynStore) {
    said(&store, "a", "apples", "pears").await;
    let many = (0..5001).map(|n| Message::user(n.to_string(), "apples"));
    run("b", "r").of(OWNER).with(many).begun(&store).await;
    assert_eq!(found(&store, "apples").await, "ba");
}
