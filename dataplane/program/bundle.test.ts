import { beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'

let inputs: string[] = []
let bytes = 0
/** What is loaded when the process starts, whatever its config. */
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
  })
  inputs = Object.keys(metafile.inputs)
  bytes = outputFiles[0]?.contents.length ?? 0
  const follow = (input: string): void => {
    if (atStart.has(input)) return
    atStart.add(input)
    for (const { path, kind } of metafile.inputs[input]?.imports ?? []) if (kind !== 'dynamic-import') follow(path)
  }
  follow('dataplane/main.ts')
})

describe('the data plane, bundled', () => {
  test('holds its own rooms', () => {
    expect(inputs).toContain('dataplane/main.ts')
    expect(inputs.length).toBeGreaterThan(50)
  })

  test.each([
    ['a cluster library', /node_modules\/(@kubernetes|@kubernetes-models|kubernetes-models|cdk8s|cdk8s-plus-29|constructs)\//],
    ['the operator', /^operator\//],
    ['models or CRDs', /^(gen\/v1alpha1\/models|charts\/)/],
    ['test code', /(\.test\.ts$|^e2e\/|^dataplane\/testing\/)/],
    ['a second HTTP client', /node_modules\/(undici|axios|node-fetch|got)\//],
  ])('holds nothing of %s', (_name, pattern) => {
    expect(inputs.filter((input) => pattern.test(input))).toEqual([])
  })

  test.each([
    ['LLM', /^dataplane\/llm\//],
    ['MCP', /^dataplane\/mcp\/(?!session\/codec|message\/json)/],
    ['agent runtime', /^dataplane\/agentruntime\//],
    ['config stream', /^dataplane\/config\/stream|node_modules\/@grpc\//],
    ['config file', /^dataplane\/config\/file\/(flatten|yaml|checks)|node_modules\/yaml\//],
  ])('loads what only %s configurations use when there is one', (_name, pattern) => {
    expect(atStart.has('dataplane/gateway/gateway.ts')).toBe(true)
    expect([...atStart].filter((input) => pattern.test(input))).toEqual([])
  })

  test('is at most 4 MiB', () => {
    expect(bytes).toBeGreaterThan(100_000)
    expect(bytes).toBeLessThan(4 * 1024 * 1024)
  })
})
