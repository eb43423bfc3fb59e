import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import type { Files } from './output.ts'

const run = promisify(execFile)
const XDS = 'node_modules/@grpc/grpc-js-xds/deps'

/**
 * Where `.proto` files come from: OTLP's, which no npm package has, and what is newer than the ones that ship with grpc-js-xds; ours; theirs.
 * The first that has a file gives it.
 */
const SOURCES = ['api/codegen/proto', 'api/config', `${XDS}/envoy-api`, `${XDS}/googleapis`, `${XDS}/protoc-gen-validate`, `${XDS}/xds`]

/** The files that define TYPES. */
const FILES = [
  'envoy/service/discovery/v3/ads.proto',
  'envoy/service/auth/v3/external_auth.proto',
  'envoy/service/ext_proc/v3/external_processor.proto',
  'envoy/service/ratelimit/v3/rls.proto',
  'opentelemetry/proto/collector/logs/v1/logs_service.proto',
  'opentelemetry/proto/collector/trace/v1/trace_service.proto',
  'resource.proto',
]

/** The services and messages that we speak; everything that they lead to is generated, nothing else. */
const TYPES = [
  'envoy.service.discovery.v3.AggregatedDiscoveryService',
  'envoy.service.auth.v3.Authorization',
  'envoy.service.ext_proc.v3.ExternalProcessor',
  'envoy.service.ratelimit.v3.RateLimitService',
  'opentelemetry.proto.collector.logs.v1.LogsService',
  'opentelemetry.proto.collector.trace.v1.TraceService',
  'proxy.dev.resource.Resource',
  'proxy.dev.resource.Address',
]

/** Annotations of the sources that have no meaning at run time. */
const WITHOUT = [
  'validate.rules',
  'validate.required',
  'validate.disabled',
  'envoy.annotations.deprecated_at_minor_version',
  'envoy.annotations.disallowed_by_default',
  'envoy.annotations.disallowed_by_default_enum',
  'envoy.annotations.deprecated_at_minor_version_enum',
  'udpa.annotations.file_status',
  'udpa.annotations.file_migrate',
  'udpa.annotations.message_migrate',
  'udpa.annotations.field_migrate',
  'udpa.annotations.enum_migrate',
  'udpa.annotations.versioning',
  'xds.annotations.v3.file_status',
  'xds.annotations.v3.message_status',
  'xds.annotations.v3.field_status',
]

/** The buf binary of this platform; the package's own launcher needs an install script, which are blocked. */
function findBuf(): string {
  const require = createRequire(import.meta.url)
  return require.resolve(`@bufbuild/buf-${process.platform}-${process.arch}/bin/buf`)
}

/** Copies a `.proto` file and all that it imports: the sources as a whole do not compile, some of their imports are missing. */
async function copyClosure(root: string, file: string, into: string, seen: Set<string>): Promise<void> {
  if (seen.has(file) || file.startsWith('google/protobuf/')) return
  seen.add(file)
  for (const source of SOURCES) {
    const text = await readFile(join(root, source, file), 'utf8').catch(() => undefined)
    if (text === undefined) continue
    await mkdir(dirname(join(into, file)), { recursive: true })
    await cp(join(root, source, file), join(into, file))
    for (const [, imported] of text.matchAll(/^import (?:public )?"([^"]+)";/gm)) await copyClosure(root, imported ?? '', into, seen)
    return
  }
  throw new Error(`${file} is imported but in none of ${SOURCES.join(', ')}`)
}

/**
 * Generates the messages of every protocol that we speak below `gen/proto`.
 * JavaScript with declarations, not TypeScript: protoc-gen-es writes enums, which Node cannot strip.
 */
export async function toProtos(root: string): Promise<Files> {
  const work = await mkdtemp(join(tmpdir(), 'protos-'))
  const out = join(work, 'out')
  const plugin = join(root, 'node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es')
  const template = {
    version: 'v2',
    inputs: [{ directory: 'in', types: TYPES, exclude_types: WITHOUT }],
    plugins: [{ local: [process.execPath, plugin], out, include_imports: true, opt: ['target=js+dts', 'import_extension=js'] }],
  }
  try {
    const seen = new Set<string>()
    for (const file of FILES) await copyClosure(root, file, join(work, 'in'), seen)
    await run(findBuf(), ['generate', '--template', JSON.stringify(template)], { cwd: work, env: { ...process.env, BUF_CACHE_DIR: join(work, 'cache') } })
    const entries = await readdir(out, { recursive: true, withFileTypes: true })
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    return Object.fromEntries(await Promise.all(paths.map(async (path) => [`gen/proto/${relative(out, path)}`, await readFile(path, 'utf8')])))
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
