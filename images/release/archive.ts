import { gzipSync } from 'node:zlib'

/** A regular file in an archive. */
export interface ArchiveFile {
  /** Relative path with `/`. */
  readonly path: string
  readonly content: Buffer | string
  readonly isExecutable?: boolean
}

const BLOCK = 512

/**
 * A gzip-compressed tar (POSIX ustar), the format of Helm charts and npm packages. The same files produce the same bytes: owner and time are 0.
 *
 * @param level of gzip, 1 to 9
 * @throws if a path has more than 100 bytes, starts with `/` or contains `..`
 */
export function packFiles(files: readonly ArchiveFile[], level = 9): Buffer {
  const blocks = files.flatMap(({ path, content, isExecutable = false }) => {
    const data = Buffer.from(content)
    return [createHeader(path, data.length, isExecutable ? 0o755 : 0o644), data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK)]
  })
  // Two empty blocks end the archive.
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level })
}

function createHeader(path: string, size: number, mode: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`${path}: the path is longer than 100 bytes`)
  if (path.startsWith('/') || path.split('/').includes('..')) throw new Error(`${path}: the path leaves the archive`)
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`
  header.write(path, 0)
  header.write(octal(mode, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(size, 12), 124)
  header.write(octal(0, 12), 136)
  // The checksum is computed with spaces in its place.
  header.write(' '.repeat(8), 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
