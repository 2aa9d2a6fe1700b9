use super::{super::image_scale::tests::photo, *};
use crate::model::Block;

fn image(value: &str) -> ContentPart {
    ContentPart::image(PartSource::Data {
        value: value.to_owned(),
        mime_type: "image/png".to_owned(),
    })
}

/// A step of a user for each image, with an answer after each but the last one.
fn conversation(images: &[&str]) -> (Vec<ModelStep>, usize) {
    let mut steps = Vec::new();
    for value in images {
        steps.extend([
            ModelStep::User(vec![image(value)]),
            ModelStep::Assistant(vec![Block::Text("yes".to_owned())]),
        ]);
    }
    steps.pop();
    let first_new = steps.len() - 1;
    (steps, first_new)
}

/// Returns what stands in the place of each image: its length, or the note.
fn sent(steps: &[ModelStep]) -> Vec<String> {
    let parts = steps.iter().filter_map(|step| match step {
        ModelStep::User(parts) => parts.first(),
        _ => None,
    });
    let told = |part: &ContentPart| match part {
        ContentPart::Text(text) => text.text.clone(),
        part => inline(&mut part.clone()).unwrap().0.len().to_string(),
    };
    parts.map(told).collect()
}

#[tokio::test]
async fn the_oldest_media_leave_a_request_that_has_too_many() {
    let (mut steps, first_new) = conversation(&["AAAA", "AAAA", "AAAA"]);
    let limits = MediaLimits { media: Some(2), ..MediaLimits::default() };
    assert!(
        fit(&mut steps, first_new, &limits, &"key:ann".into()).await.is_empty(),
        "earlier ones were told of before"
    );
    let sent = sent(&steps);
    assert!(
        sent[0].starts_with(
            "(An attachment of an earlier message, image, is left out: the model takes 2"
        ),
        "{sent:?}"
    );
    assert_eq!(sent[1..], ["4", "4"]);
}

#[tokio::test]
async fn the_oldest_media_leave_a_request_that_is_too_large_and_a_new_one_is_told() {
    let large = "A".repeat(1000);
    let (mut steps, first_new) = conversation(&["AAAA", &large, &large]);
    let limits = MediaLimits { media_chars: Some(1500), ..MediaLimits::default() };
    assert!(fit(&mut steps, first_new, &limits, &"key:ann".into()).await.is_empty());
    let of_steps = sent(&steps);
    assert_eq!(
        (of_steps[0].starts_with("(An"), of_steps[1].starts_with("(An"), &*of_steps[2]),
        (true, true, "1000")
    );
    let limits = MediaLimits { media_chars: Some(500), ..MediaLimits::default() };
    let skipped = fit(&mut steps, first_new, &limits, &"key:ann".into()).await;
    assert_eq!((skipped.len(), skipped[0].kind), (1, "image"));
    assert!(sent(&steps)[2].starts_with("(An attachment of this message"));
}

#[tokio::test]
async fn many_images_have_a_smaller_side() {
    let large = photo(120, 60);
    let limits = MediaLimits {
        image_side: Some(100),
        many_images_above: Some(1),
        max_side_if_many: Some(50),
        ..MediaLimits::default()
    };
    let sides = async |images: &[&str]| {
        let (mut steps, first_new) = conversation(images);
        assert!(fit(&mut steps, first_new, &limits, &"key:ann".into()).await.is_empty());
        let mut sides = Vec::new();
        each_medium(&mut steps, |part| {
            let bytes =
                base64::Engine::decode(&base64::prelude::BASE64_STANDARD, inline(part).unwrap().0)
                    .unwrap();
            sides.push(image::load_from_memory(&bytes).unwrap().width());
        });
        sides
    };
    assert_eq!(sides(&[&large]).await, [100]);
    assert_eq!(sides(&[&large, &photo(40, 10)]).await, [50, 40]);
}

#[tokio::test]
async fn an_image_that_cannot_be_scaled_is_left_out_alone() {
    let (mut steps, first_new) = conversation(&["bm8=", "bm9ubm9ubm8="]);
    let limits = MediaLimits { image_chars: Some(8), ..MediaLimits::default() };
    let skipped = fit(&mut steps, first_new, &limits, &"key:ann".into()).await;
    assert_eq!((skipped.len(), sent(&steps)[0].as_str()), (1, "4"));
    assert!(sent(&steps)[1].contains("cannot be scaled down"), "{:?}", sent(&steps));
}
