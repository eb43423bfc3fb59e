import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** A registry of images on 127.0.0.1. */
export interface ImageRegistry {
  /** `127.0.0.1:<port>`. */
  readonly host: string
  /** Stores an image with one file and returns `<host>/<repository>@sha256:<digest>`. */
  push(repository: string, file: string, content: string): string
  close(): Promise<void>
}

/** Starts a registry with the read side of the OCI distribution API. */
export async function startImageRegistry(): Promise<ImageRegistry> {
  const blobs = new Map<string, Buffer>()
  const store = (bytes: Buffer): string => {
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    blobs.set(digest, bytes)
    return digest
  }
  const server = createServer(({ url = '' }, response) => {
    const blob = /^\/v2\/[^?]+\/(?:manifests|blobs)\//.test(url) ? blobs.get(url.slice(url.lastIndexOf('/') + 1)) : undefined
    if (blob === undefined) response.writeHead(404)
    response.end(blob)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    push(repository, file, content) {
      const directory = mkdtempSync(join(tmpdir(), 'image-'))
      try {
        writeFileSync(join(directory, file), content)
        const layer = gzipSync(execFileSync('tar', ['-C', directory, '-c', file]))
        const layers = [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', size: layer.length, digest: store(layer) }]
        return `${host}/${repository}@${store(Buffer.from(JSON.stringify({ schemaVersion: 2, layers })))}`
      } finally {
        rmSync(directory, { recursive: true })
      }
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
