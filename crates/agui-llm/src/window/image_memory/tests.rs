use proptest::prelude::*;

use super::*;

/// A GIF of 35 bytes with one pixel.
pub(in crate::window) fn gif(width: u16, height: u16) -> Vec<u8> {
    let [[w1, w2], [h1, h2]] = [width.to_le_bytes(), height.to_le_bytes()];
    let head = [b"GIF89a", &[w1, w2, h1, h2, 0x80, 0][..], &[0; 7]].concat();
    [&head[..], b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b"].concat()
}

/// A PNG with a number of texts.
pub(in crate::window) fn png(depth: u8, colour: u8, side: u32, texts: usize) -> Vec<u8> {
    let side = side.to_be_bytes();
    let chunk = |kind: &[u8; 4], body: &[u8]| {
        [&u32::try_from(body.len()).unwrap().to_be_bytes(), &kind[..], body, &[0; 4]].concat()
    };
    let header = chunk(b"IHDR", &[&side[..], &side, &[depth, colour, 0, 0, 0]].concat());
    let texts = vec![chunk(b"tEXt", b"a\0"); texts].concat();
    [b"\x89PNG\r\n\x1a\n".to_vec(), header, texts, chunk(b"IDAT", b"")].concat()
}

pub(in crate::window) fn webp(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let written = chunks.iter().flat_map(|(name, body)| {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        [&name[..], &length, body, &[0][..body.len() % 2]].concat()
    });
    [b"RIFF\xff\xff\xff\x7fWEBP".to_vec(), written.collect()].concat()
}

/// The chunk that has the size of a WebP.
pub(in crate::window) fn vp8x(flags: u8, side: u16) -> Vec<u8> {
    let [low, high] = (side - 1).to_le_bytes();
    vec![flags, 0, 0, 0, low, high, 0, low, high, 0]
}

fn vp8(side: u16) -> Vec<u8> {
    let [low, high] = side.to_le_bytes();
    vec![0x10, 2, 0, 0x9d, 1, 0x2a, low, high, low, high]
}

/// A JPEG of 64 × 64 pixels: segments, and the bytes of a scan.
fn jpeg(segments: &[(u8, &[u8])]) -> Vec<u8> {
    let written = segments.iter().flat_map(|(marker, body)| {
        let length = u16::try_from(body.len() + 2).unwrap().to_be_bytes();
        [&[0xff, *marker], &length[..], body].concat()
    });
    [b"\xff\xd8".to_vec(), written.collect(), vec![0; 8]].concat()
}

const GREY: &[u8] = &[8, 0, 64, 0, 64, 1, 1, 0x11, 0];
const COLOURS: &[u8] = &[8, 0, 64, 0, 64, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0];

/// A progressive JPEG with the first bits of its blocks and then one more bit, which is sent again and again.
pub(in crate::window) fn jpeg_of_scans(count: usize) -> Vec<u8> {
    let quantisation = [&[0][..], &[1; 64]].concat();
    let codes = [&[0, 1][..], &[0; 15], &[0]].concat();
    let mut file =
        jpeg(&[(0xdb, &quantisation), (0xc2, GREY), (0xc4, &codes), (0xda, &[1, 1, 0, 0, 0, 1])]);
    for _ in 0..count {
        file.extend([0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    [file, b"\xff\xd9".to_vec()].concat()
}

/// Returns the bytes of memory for each pixel.
fn per_pixel(file: &[u8]) -> Option<u64> {
    let ImageMemory { size, bytes } = image_memory(file)?;
    Some(
        (bytes - file.len() as u64 - METADATA_BYTES)
            / (u64::from(size.width) * u64::from(size.height)),
    )
}

#[test]
fn the_memory_of_an_image_is_read_from_its_header() {
    let scan = |colours: u8| (0xda, vec![colours; 4]);
    let of_jpeg = |frame: u8, body: &[u8], in_scan: u8| {
        let (marker, scan) = scan(in_scan);
        per_pixel(&jpeg(&[(0xe1, b"Exif"), (frame, body), (marker, &scan)]))
    };
    assert_eq!(per_pixel(&gif(64, 32)), Some(8));
    assert_eq!(
        [(1, 3), (8, 6), (16, 0), (16, 6)]
            .map(|(depth, colour)| per_pixel(&png(depth, colour, 64, 900))),
        [Some(8), Some(8), Some(8), Some(12)]
    );
    assert_eq!(per_pixel(&webp(&[(b"VP8 ", &vp8(64))])), Some(5));
    let extended = |flags: u8| {
        per_pixel(&webp(&[(b"VP8X", &vp8x(flags, 64)), (b"ALPH", &[0]), (b"VP8 ", &vp8(64))]))
    };
    assert_eq!([0x08, 0x10, 0x02, 0x12].map(extended), [Some(5), Some(8), Some(12), Some(12)]);
    assert_eq!((of_jpeg(0xc0, COLOURS, 3), of_jpeg(0xc0, GREY, 1)), (Some(5), Some(5)));
    assert_eq!(
        (of_jpeg(0xc2, COLOURS, 3), of_jpeg(0xc0, COLOURS, 1)),
        (Some(9), Some(9)),
        "kept until the last scan"
    );
    let wide = image_memory(&gif(u16::MAX, 1)).unwrap();
    assert_eq!(
        wide.bytes,
        65_536 * 32 * 8 + 35 + METADATA_BYTES,
        "decoders have whole blocks and several rows"
    );
    assert_eq!(
        image_memory(&gif(u16::MAX, u16::MAX)).unwrap().bytes,
        (65_536 * 65_536 * 8) + 35 + METADATA_BYTES
    );
}

/// Public reports, and what was found beside them: a second size in a JPEG; a WebP with metadata that claims 4 GB, with a frame that
/// is larger than the image, or with 65,536 groups of tables; a hundred thousand texts, or pieces of one.
#[test]
fn a_file_that_makes_its_decoder_allocate_more_than_its_size_says_is_not_decoded() {
    let twice = jpeg(&[(0xc0, GREY), (0xc0, COLOURS), (0xda, &[3, 1, 1, 1])]);
    let mut profile = webp(&[(b"VP8X", &vp8x(0, 64)), (b"VP8 ", &vp8(64)), (b"EXIF", b"")]);
    let claim = profile.len() - 4;
    profile[claim..].fill(0xff);
    let frame = webp(&[(b"VP8X", &vp8x(0, 64)), (b"VP8 ", &vp8(16_383))]);
    let animation =
        |inner: &[u8]| webp(&[(b"VP8X", &vp8x(0, 64)), (b"ANMF", &[&[0; 16], inner].concat())]);
    let inner = |name: &[u8; 4], body: &[u8]| webp(&[(name, body)])[12..].to_vec();
    assert!(image_memory(&animation(&inner(b"VP8 ", &vp8(64)))).is_some());
    let in_animation = animation(&inner(b"VP8 ", &vp8(16_383)));
    let claim_in_animation = animation(b"EXIF\xff\xff\xff\xff");
    let without_scan = jpeg(&[(0xc0, GREY)]);
    let lossless = webp(&[(b"VP8L", b"\x2f\x3f\xc0\x0f\0")]);
    let lossless_in_animation = animation(&inner(b"VP8L", b"\x2f\x3f\xc0\x0f\0"));
    let lossless_transparency =
        webp(&[(b"VP8X", &vp8x(0x10, 64)), (b"ALPH", &[1]), (b"VP8 ", &vp8(64))]);
    let texts = png(8, 6, 64, 1_000);
    let pieces =
        [vec![(0xe1, &b"x"[..]); 1_000], vec![(0xc0, GREY), (0xda, &[1, 1, 1, 1])]].concat();
    let pieces = jpeg(&pieces);
    for file in [
        twice,
        profile,
        frame,
        in_animation,
        claim_in_animation,
        without_scan,
        lossless,
        lossless_in_animation,
        lossless_transparency,
        texts,
        pieces,
    ] {
        assert!(image_memory(&file).is_none(), "{file:02x?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_reading_fail(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        beginning in prop::sample::select(vec![
            png(8, 6, 4, 1), gif(3, 4), webp(&[(b"VP8X", &vp8x(0, 64))]), jpeg(&[(0xc2, COLOURS)])[..21].to_vec(),
        ]),
    ) {
        let _ = image_memory(&[beginning, bytes].concat());
    }
}
