import { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { parsePluginImage } from '#api/plugin-image.ts'
import { LayerFile, MAX_SOURCE_BYTES, type Found } from './layer.ts'
import { createRegistryAccess, type RegistryFiles } from './registry-access.ts'
import { parseObject, Registry, type RegistryOptions } from './registry.ts'
import type { Fetch } from './store.ts'

const MAX_MANIFEST_BYTES = 4 * 1024 * 1024
const MAX_BLOB_BYTES = 256 * 1024 * 1024
const MAX_LAYERS = 128
/** Time for all requests. */
const TOTAL_MS = 120_000
const INDEX_TYPES = ['application/vnd.oci.image.index.v1+json', 'application/vnd.docker.distribution.manifest.list.v2+json']
const MANIFEST_TYPES = ['application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json']
/** Name of a file that is a layer by itself, as tools for OCI artifacts write it. */
const TITLE = 'org.opencontainers.image.title'

/** The image and the file of a request, from its URL (`describeSource`). */
export const describeImage = (url: string): string => url.replace('http://', '')

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly title: string | undefined
  readonly platform: string
}

/**
 * Fetches a file of an image from its registry (OCI distribution API). Manifest, layers and thereby the file are verified by the digest of the image, so that a value is
 * fetched once. The request has the image as host and the path of the file as path.
 */
export function createPluginImageFetch({ files = {}, ...options }: RegistryOptions & { readonly files?: RegistryFiles }, totalMs = TOTAL_MS): Fetch<string> {
  const readAccess = createRegistryAccess(files)
  return async ({ url }, _, signal, previous) => {
    if (previous !== undefined) return previous
    const image = parsePluginImage(url.host)
    if (image === undefined) throw new Error(`${url.host} is no image with a digest`)
    const registry = new Registry(image.registry, image.repository, AbortSignal.any([signal, AbortSignal.timeout(totalMs)]), {
      ...options,
      access: await readAccess(),
    })
    const path = url.path.replace(/^\/+/, '')
    const found = await findFile(await readLayers(registry, image.digest), registry, path)
    if (found === undefined || found === 'removed') throw new Error(`the image has no file ${path}`)
    return new TextDecoder('utf-8', { fatal: true }).decode(found.bytes)
  }
}

/** Layers of an image, the lowest first. An index of several platforms has the files of plugins in each: that of Linux on x86-64 is taken, or the first. */
async function readLayers(registry: Registry, digest: string): Promise<readonly Descriptor[]> {
  const accept = [...INDEX_TYPES, ...MANIFEST_TYPES].join(', ')
  const read = async (from: string) => parseObject(await registry.get('manifests', from, MAX_MANIFEST_BYTES, accept), 'the manifest')
  let manifest = await read(digest)
  if (Array.isArray(manifest['manifests'])) {
    const manifests = descriptors(manifest['manifests'])
    const chosen = manifests.find(({ platform }) => platform === 'linux/amd64') ?? manifests[0]
    if (chosen === undefined) throw new Error('the index of the image is empty')
    manifest = await read(chosen.digest)
  }
  return descriptors(manifest['layers'])
}

function descriptors(list: unknown): Descriptor[] {
  if (!Array.isArray(list) || list.length > MAX_LAYERS) throw new Error(`the manifest has no list of at most ${MAX_LAYERS} layers`)
  return list.map((item: unknown) => {
    const { mediaType, digest, annotations, platform } = Object(item) as Readonly<Record<string, unknown>>
    if (typeof digest !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error('the manifest has a layer without a SHA-256 digest')
    const { os, architecture } = Object(platform) as Readonly<Record<string, unknown>>
    const title = (Object(annotations) as Readonly<Record<string, unknown>>)[TITLE]
    return {
      mediaType: typeof mediaType === 'string' ? mediaType : '',
      digest,
      title: typeof title === 'string' ? title.replace(/^(\.?\/)+/, '') : undefined,
      platform: `${String(os)}/${String(architecture)}`,
    }
  })
}

async function findFile(layers: readonly Descriptor[], registry: Registry, path: string): Promise<Found> {
  for (const { mediaType, digest, title } of layers.toReversed()) {
    if (title === path) return { bytes: await registry.get('blobs', digest, MAX_SOURCE_BYTES) }
    if (!/\btar\b/.test(mediaType) || /foreign|nondistributable/.test(mediaType)) continue
    const found = await findInLayer(registry.read('blobs', digest, MAX_BLOB_BYTES), mediaType, path)
    if (found !== undefined) return found
  }
  return undefined
}

async function findInLayer(pieces: AsyncGenerator<Buffer>, mediaType: string, path: string): Promise<Found> {
  const file = new LayerFile(path)
  const compressed = Readable.from(pieces, { objectMode: false })
  const decompress = /gzip/.test(mediaType) ? createGunzip() : /zstd/.test(mediaType) ? createZstdDecompress() : undefined
  // Errors of the download end the decompression, and the loop.
  const stream: AsyncIterable<Buffer> = decompress === undefined ? compressed : compressed.on('error', (error) => decompress.destroy(error)).pipe(decompress)
  try {
    // To the end: only then the digest is known.
    for await (const piece of stream) file.push(piece)
  } finally {
    compressed.destroy()
    decompress?.destroy()
  }
  return file.found
}
