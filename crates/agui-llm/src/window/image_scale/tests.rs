use std::{pin::pin, time::Duration};

use image::{Rgb, RgbImage, Rgba};
use tokio::time::timeout;

use super::{
    super::{
        image_memory::tests::{gif, jpeg_of_scans, png, vp8x, webp},
        media_fit::is_larger,
    },
    *,
};

/// Noise, which does not become smaller by compression.
pub(in crate::window) fn photo(width: u32, height: u32) -> String {
    let mut number = 1_u32;
    let noise = RgbImage::from_fn(width, height, |_, _| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = number.to_le_bytes();
        Rgb([red, green, blue])
    });
    let mut bytes = Cursor::new(Vec::new());
    noise.write_to(&mut bytes, ImageFormat::Png).unwrap();
    STANDARD.encode(bytes.into_inner())
}

async fn scaled(
    base64: String,
    side: Option<u32>,
    chars: Option<usize>,
) -> Result<Arc<ScaledImage>, String> {
    SCALER.scaled(&ANONYMOUS.into(), base64, side, chars).await
}

fn read(image: &ScaledImage) -> DynamicImage {
    image::load_from_memory(&STANDARD.decode(&image.base64).unwrap()).unwrap()
}

#[tokio::test]
async fn an_image_is_scaled_to_the_longer_side() {
    let image = photo(300, 200);
    assert!(is_larger(&image, Some(299), None) && !is_larger(&image, Some(300), None));
    let scaled = scaled(image, Some(150), None).await.unwrap();
    assert_eq!(
        (scaled.mime_type, read(&scaled).width(), read(&scaled).height()),
        ("image/jpeg", 150, 100)
    );
}

#[tokio::test]
async fn an_image_is_scaled_until_it_has_few_enough_characters() {
    let image = photo(300, 200);
    assert!(is_larger(&image, None, Some(20_000)));
    let scaled = scaled(image, Some(8_000), Some(20_000)).await.unwrap();
    assert!(scaled.base64.len() <= 20_000, "{}", scaled.base64.len());
    assert!(read(&scaled).width() > 100);
}

#[tokio::test]
async fn transparency_stays() {
    let mut bytes = Cursor::new(Vec::new());
    let image = RgbaImage::from_fn(40, 40, |x, _| Rgba([1, 2, 3, if x < 20 { 0 } else { 255 }]));
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let scaled = scaled(STANDARD.encode(bytes.into_inner()), Some(20), None).await.unwrap();
    assert_eq!((scaled.mime_type, read(&scaled).to_rgba8().get_pixel(2, 2).0[3]), ("image/png", 0));
}

#[tokio::test]
async fn a_turned_photo_is_sent_upright() {
    let mut jpeg = Cursor::new(Vec::new());
    RgbImage::from_pixel(40, 20, Rgb([9, 9, 9])).write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let jpeg = jpeg.into_inner();
    // Exif: a list of one entry, the orientation 6, "turn right".
    let exif =
        b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned: Vec<u8> = jpeg[..2].iter().chain(exif).chain(&jpeg[2..]).copied().collect();
    let turned = STANDARD.encode(turned);
    let by_side = scaled(turned.clone(), Some(20), None).await.unwrap();
    assert_eq!((read(&by_side).width(), read(&by_side).height()), (10, 20));
    let by_chars = scaled(turned, None, Some(100_000)).await.unwrap();
    assert_eq!((read(&by_chars).width(), read(&by_chars).height()), (20, 40));
}

/// The reasons are those of the header. Decoders have others.
#[tokio::test]
async fn an_image_that_claims_too_many_pixels_is_not_decoded() {
    for (file, pixels) in [
        (gif(u16::MAX, u16::MAX), "65535 × 65535"),
        (gif(4_200, 4_200), "4200 × 4200"),
        (png(16, 6, 12_000, 0), "12000 × 12000"),
        (png(8, 6, u32::MAX, 0), "4294967295 × 4294967295"),
        (webp(&[(b"VP8X", &vp8x(0, 16_384))]), "16384 × 16384"),
    ] {
        let file = STANDARD.encode(file);
        assert!(is_larger(&file, Some(4_000), None));
        let problem = scaled(file, Some(4_000), None).await.err().unwrap();
        let expected = format!("{UNSCALABLE}: {pixels} pixels take more than 128 MiB of memory");
        assert_eq!(problem, expected);
    }
}

#[tokio::test]
async fn a_photo_that_is_sent_in_a_thousand_scans_is_not_decoded_to_its_end() {
    assert!(scaled(STANDARD.encode(jpeg_of_scans(10)), Some(16), None).await.is_ok());
    let problem =
        scaled(STANDARD.encode(jpeg_of_scans(1_000)), Some(16), None).await.err().unwrap();
    assert!(problem.contains("scans"), "{problem}");
}

#[tokio::test]
async fn an_owner_waits_for_its_own_images_while_another_ones_are_scaled() {
    let (scaler, [ann, bob]) = (Scaler::new(), ["key:ann", "key:bob"].map(Arc::from));
    let held = [
        scaler.memory.take(&ann, MIN_IMAGE_BYTES).await,
        scaler.memory.take(&ann, MIN_IMAGE_BYTES).await,
    ];
    let mut third = pin!(scaler.scaled(&ann, photo(30, 20), Some(15), None));
    let of_bob =
        timeout(Duration::from_secs(20), scaler.scaled(&bob, photo(30, 20), Some(15), None));
    tokio::select! {
        _ = &mut third => panic!("two images of one owner are all that are scaled at once"),
        image = of_bob => assert!(image.unwrap().is_ok()),
    }
    assert_eq!(scaler.memory.taken(), MAX_IMAGE_BYTES);
    drop(held);
    assert!(third.await.is_ok());
    assert_eq!(scaler.memory.taken(), 0);
}

#[tokio::test]
async fn a_scaled_image_is_kept_for_its_owner_alone() {
    let (scaler, image, [ann, bob]) =
        (Scaler::new(), photo(30, 20), ["key:ann", "key:bob"].map(Arc::from));
    let scale =
        async |owner: &Arc<str>| scaler.scaled(owner, image.clone(), Some(15), None).await.unwrap();
    let first = scale(&ann).await;
    assert!(!Arc::ptr_eq(&first, &scale(&bob).await), "the time would tell that ann has sent it");
    assert!(Arc::ptr_eq(&first, &scale(&ann).await));
    assert_eq!(scaler.kept.lock().images.len(), 2);
}

#[test]
fn an_owner_keeps_a_quarter_of_all_scaled_images() {
    let image = Arc::new(ScaledImage { base64: "x".repeat(3 << 20), mime_type: "image/png" });
    let [ann, bob, anyone] = ["key:ann", "key:bob", ANONYMOUS].map(Arc::from);
    let mut kept = Kept::default();
    kept.add(&bob, 0, image.clone());
    for key in 0..20 {
        kept.add(&ann, key, image.clone());
    }
    assert_eq!((kept.chars_of(&ann), kept.chars_of(&bob)), (6 << 20, 3 << 20));
    assert!(
        kept.find(&ann, 19).is_some()
            && kept.find(&ann, 17).is_none()
            && kept.find(&bob, 0).is_some()
    );
    for key in 0..20 {
        kept.add(&anyone, key, image.clone());
    }
    assert_eq!(
        (kept.chars, kept.chars_of(&anyone)),
        (30 << 20, 30 << 20),
        "without authentication one owner has all"
    );
}

#[tokio::test]
async fn what_is_no_image_has_a_reason() {
    assert!(!is_larger("bm8=", Some(1), None) && !is_larger("é", Some(1), None));
    assert!(scaled("bm8=".to_owned(), None, Some(1)).await.is_err());
}
