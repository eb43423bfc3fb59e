import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Files } from './output.ts'

const run = promisify(execFile)
const XDS = fileURLToPath(new URL('deps', import.meta.resolve('@grpc/grpc-js-xds/package.json')))

/**
 * Directories with `.proto` files, in order of precedence: files that no npm package has (OTLP) or that are newer than those of
 * grpc-js-xds; files of this project; files of grpc-js-xds.
 */
const SOURCES = ['api/codegen/proto', 'api/config', `${XDS}/envoy-api`, `${XDS}/googleapis`, `${XDS}/protoc-gen-validate`, `${XDS}/xds`]

/** Files that define TYPES. */
const FILES = [
  'envoy/service/discovery/v3/ads.proto',
  'envoy/service/auth/v3/external_auth.proto',
  'envoy/service/ext_proc/v3/external_processor.proto',
  'envoy/service/ratelimit/v3/rls.proto',
  'envoy/service/rate_limit_quota/v3/rlqs.proto',
  'opentelemetry/proto/collector/logs/v1/logs_service.proto',
  'opentelemetry/proto/collector/trace/v1/trace_service.proto',
  'resource.proto',
]

/** Services and messages that the programs use. Generated with everything that they refer to. */
const TYPES = [
  'envoy.service.discovery.v3.AggregatedDiscoveryService',
  'envoy.service.auth.v3.Authorization',
  'envoy.service.ext_proc.v3.ExternalProcessor',
  'envoy.service.ratelimit.v3.RateLimitService',
  'envoy.service.rate_limit_quota.v3.RateLimitQuotaService',
  'opentelemetry.proto.collector.logs.v1.LogsService',
  'opentelemetry.proto.collector.trace.v1.TraceService',
  'proxy.dev.resource.Resource',
  'proxy.dev.resource.Address',
]

/** Annotations without meaning at run time. */
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

/** The buf binary of this platform. The launcher of the package needs an install script; these are disabled. */
function findBuf(): string {
  const require = createRequire(import.meta.resolve('@bufbuild/buf/package.json'))
  return require.resolve(`@bufbuild/buf-${process.platform}-${process.arch}/bin/buf`)
}

/** Copies a `.proto` file and its imports. The source directories as a whole do not compile, because some imports are missing. */
async function copyClosure(root: string, file: string, into: string, seen: Set<string>): Promise<void> {
  if (seen.has(file) || file.startsWith('google/protobuf/')) return
  seen.add(file)
  for (const source of SOURCES) {
    const text = await readFile(resolve(root, source, file), 'utf8').catch(() => undefined)
    if (text === undefined) continue
    await mkdir(dirname(join(into, file)), { recursive: true })
    await cp(resolve(root, source, file), join(into, file))
    for (const [, imported] of text.matchAll(/^import (?:public )?"([^"]+)";/gm)) await copyClosure(root, imported ?? '', into, seen)
    return
  }
  throw new Error(`${file} is imported but in none of ${SOURCES.join(', ')}`)
}

/**
 * Generates the messages of all protocols in `gen/proto`: as JavaScript with declarations, because protoc-gen-es writes
 * TypeScript enums, which Node.js cannot strip.
 */
export async function toProtos(root: string): Promise<Files> {
  const work = await mkdtemp(join(tmpdir(), 'protos-'))
  const out = join(work, 'out')
  const plugin = fileURLToPath(import.meta.resolve('@bufbuild/protoc-gen-es/bin/protoc-gen-es'))
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
