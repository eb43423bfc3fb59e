import { beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'

let inputs: string[] = []
let bytes = 0
/** Files that a main thread with workers loads when it starts, with any config. */
const ofMain = new Set<string>()
/** Files that a process without workers loads when it starts, with any config. */
const atStart = new Set<string>()

beforeAll(async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [`${import.meta.dirname}/../main.ts`],
    absWorkingDir: `${import.meta.dirname}/../..`,
    bundle: true,
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'silent',
    // As in images/bundle.ts.
    plugins: [
      { name: 'without-locales', setup: ({ onLoad }) => onLoad({ filter: /[/\\]zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, () => ({ contents: 'export {}' })) },
    ],
  })
  inputs = Object.keys(metafile.inputs)
  bytes = outputFiles[0]?.contents.length ?? 0
  const follow = (input: string, found: Set<string>): void => {
    if (found.has(input)) return
    found.add(input)
    for (const { path, kind } of metafile.inputs[input]?.imports ?? []) if (kind !== 'dynamic-import') follow(path, found)
  }
  follow('dataplane/main.ts', ofMain)
  for (const input of ['dataplane/main.ts', 'dataplane/program/parts.ts']) follow(input, atStart)
})

describe('the bundle of the data plane', () => {
  test('contains the data plane modules', () => {
    expect(inputs).toContain('dataplane/main.ts')
    expect(inputs.length).toBeGreaterThan(50)
  })

  test.each([
    ['Kubernetes libraries', /node_modules\/(@kubernetes|@kubernetes-models|kubernetes-models|cdk8s|cdk8s-plus-29|constructs)\//],
    ['the operator', /^operator\//],
    ['the models and CRDs', /^(gen\/v1alpha1\/models|charts\/)/],
    ['test code', /(\.test\.ts$|^e2e\/|^dataplane\/testing\/)/],
    ['a second HTTP client', /node_modules\/(undici|axios|node-fetch|got)\//],
  ])('contains no part of %s', (_name, pattern) => {
    expect(inputs.filter((input) => pattern.test(input))).toEqual([])
  })

  test.each([
    ['LLM', /^dataplane\/backend\/llm\//],
    ['MCP', /^dataplane\/backend\/mcp\/(?!session\/keys)/],
    ['agent runtime', /^dataplane\/backend\/agentruntime\//],
    ['the management API', /^dataplane\/management\/console\/(?!live|versions|thread)|node_modules\/zod\//],
    ['Redis', /^dataplane\/store\/redis\/connection|node_modules\/@redis\//],
    ['PostgreSQL', /^dataplane\/store\/postgres\/(?!settings)|node_modules\/pg/],
    ['config stream', /^dataplane\/config\/stream|node_modules\/@grpc\//],
    ['config file', /^dataplane\/config\/file\/(flatten|yaml|checks)|node_modules\/yaml\//],
  ])('loads code for %s only when a config uses it', (_name, pattern) => {
    expect(atStart.has('dataplane/gateway/gateway.ts')).toBe(true)
    expect([...atStart].filter((input) => pattern.test(input))).toEqual([])
  })

  test('loads no code for traffic in the main thread of workers', () => {
    expect([...ofMain].filter((input) => /^dataplane\/(gateway|policy|server\/http\d)\//.test(input))).toEqual([])
  })

  // The prices of LLMs are 0.1 MiB. The management API and zod, 0.5 MiB of it, are loaded with the first request for them; MCP, 0.4 MiB, and gRPC with protobuf,
  // 1.1 MiB, with the first config that uses them; the client of Redis, 1.1 MiB, with config.redis, and that of PostgreSQL, 0.2 MiB, with config.postgres.
  test('is at most 9 MiB in size', () => {
    expect(bytes).toBeGreaterThan(100_000)
    expect(bytes).toBeLessThan(9 * 1024 * 1024)
  })
})
