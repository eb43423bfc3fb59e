import { rename, writeFile } from 'node:fs/promises'

/** Replaces a file atomically, so that a program that watches it never reads a part of it. */
export async function replaceFile(path: string, text: string): Promise<void> {
  // No program reads files with this suffix.
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}
