-- Reserves space for a file, which is hidden until its bytes are stored.
INSERT INTO agui_files (owner, id, digest, media_type, name, bytes, width, height, created_at, unused_since, object_key, stored)
VALUES (:owner, :id, :digest, :media_type, :name, :bytes, :width, :height, :now, :now, :object_key, 0)
