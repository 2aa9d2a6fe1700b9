-- Reads all files for a check. Unlinked ones are being deleted, and those without all chunks are being stored.
SELECT f.*,
    (SELECT COUNT(*) FROM agui_file_chunks AS c WHERE c.file = f.number) <> (f.bytes + 262143) / 262144 AS lacks_chunk
FROM agui_files AS f WHERE f.owner <> '' AND f.stored
