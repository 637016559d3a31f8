-- Pages as pictures: where on them a passage stands, what the file's own table of contents says of them, and for how long
-- the pictures are kept.

ALTER TABLE chunks ADD COLUMN boxes jsonb NOT NULL DEFAULT '[]';
ALTER TABLE pages ADD COLUMN bookmarks jsonb NOT NULL DEFAULT '[]';

COMMENT ON COLUMN chunks.boxes IS 'Places on pages, each as [page, left, top, right, bottom] in points from the upper left corner.';
COMMENT ON COLUMN pages.bookmarks IS 'What begins here by the file''s own table of contents and has no heading in the text, each as [level, title].';

CREATE INDEX artifacts_page_pictures ON artifacts (created_at) WHERE kind = 'page_picture';
