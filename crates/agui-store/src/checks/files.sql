-- Reads all files for a check. Unlinked ones are being deleted, and those without all chunks are being stored.
SELECT f.*,
    (SELECT COUNT(*) FROM agui_file_chunks AS c WHERE c.file = f.number) <> f.bytes / 262144 + CASE WHEN f.bytes % 262144 = 0 THEN 0 ELSE 1 END
        AND f.object_key IS NULL AS lacks_chunk
FROM agui_files AS f WHERE f.owner <> '' AND f.stored
