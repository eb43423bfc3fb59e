import { beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'

let inputs: string[] = []
let bytes = 0

beforeAll(async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [`${import.meta.dirname}/main.ts`],
    absWorkingDir: `${import.meta.dirname}/..`,
    bundle: true,
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  inputs = Object.keys(metafile.inputs)
  bytes = outputFiles[0]?.contents.length ?? 0
})

describe('the data plane, bundled', () => {
  test('holds its own rooms', () => {
    expect(inputs).toContain('dataplane/main.ts')
    expect(inputs.length).toBeGreaterThan(50)
  })

  test.each([
    ['a cluster library', /node_modules\/(@kubernetes|@kubernetes-models|kubernetes-models|cdk8s|cdk8s-plus-29|constructs)\//],
    ['the operator', /^operator\//],
    ['models or CRDs', /^gen\/(v1alpha1\/models|crds)/],
    ['test code', /(\.test\.ts$|^e2e\/|^dataplane\/testing\/)/],
    ['a second HTTP client', /node_modules\/(undici|axios|node-fetch|got)\//],
  ])('holds nothing of %s', (_name, pattern) => {
    expect(inputs.filter((input) => pattern.test(input))).toEqual([])
  })

  test('is at most 4 MiB', () => {
    expect(bytes).toBeGreaterThan(100_000)
    expect(bytes).toBeLessThan(4 * 1024 * 1024)
  })
})
