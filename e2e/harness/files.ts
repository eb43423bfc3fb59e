import { rename, writeFile } from 'node:fs/promises'

/** Replaces a file at once: a program that watches it never reads half of it. */
export async function replaceFile(path: string, text: string): Promise<void> {
  // No program reads files of that ending.
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}
