use std::iter;

use image::{Rgb, RgbImage, Rgba, RgbaImage};

use super::*;

/// Noise, which does not become smaller by compression.
pub(in crate::llm::context) fn photo(width: u32, height: u32) -> String {
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

fn read(image: &ScaledImage) -> DynamicImage {
    image::load_from_memory(&STANDARD.decode(&image.base64).unwrap()).unwrap()
}

#[tokio::test]
async fn an_image_is_scaled_to_the_longer_side() {
    let image = photo(300, 200);
    assert!(is_larger(&image, Some(299), None) && !is_larger(&image, Some(300), None));
    let scaled = scaled(image, Some(150), None).await.unwrap();
    assert_eq!((scaled.mime_type, read(&scaled).width(), read(&scaled).height()), ("image/jpeg", 150, 100));
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
    let exif = b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned: Vec<u8> = jpeg[..2].iter().chain(exif).chain(&jpeg[2..]).copied().collect();
    let scaled = scaled(STANDARD.encode(turned), Some(20), None).await.unwrap();
    assert_eq!((read(&scaled).width(), read(&scaled).height()), (10, 20));
}

#[tokio::test]
async fn a_file_that_describes_a_huge_image_is_not_decoded() {
    // 30,000 × 30,000 pixels, in 70 bytes.
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let crc = iter::empty().chain(kind).chain(data).fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        });
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], kind, data, &(!crc).to_be_bytes()].concat()
    };
    let header = [30_000_u32.to_be_bytes(), 30_000_u32.to_be_bytes()].concat();
    let head = chunk(b"IHDR", &[&header[..], &[8, 6, 0, 0, 0]].concat());
    let bomb = [b"\x89PNG\r\n\x1a\n", &head[..], &chunk(b"IDAT", &[0x78, 0x9c]), &chunk(b"IEND", &[])].concat();
    let bomb = STANDARD.encode(bomb);
    assert!(is_larger(&bomb, Some(8_000), None));
    let problem = scaled(bomb, Some(8_000), None).await.err().unwrap();
    assert!(problem.contains("too large"), "{problem}");
}

#[tokio::test]
async fn what_is_no_image_has_a_reason() {
    assert!(!is_larger("bm8=", Some(1), None) && !is_larger("é", Some(1), None));
    assert!(scaled("bm8=".to_owned(), None, Some(1)).await.is_err());
}
