import { expect, test } from '@jest/globals'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { CONTROLLER_NAME, GATEWAY_CLASS } from '#api/names.ts'
import type { GatewayClass } from '../../source/objects.ts'
import { gatewayClassStatus } from './gateway-class.ts'

const CONFORMANCE = join(import.meta.dirname, '../../../e2e/conformance')

interface Report {
  readonly profiles: readonly {
    readonly name: string
    readonly core: { readonly result: string }
    readonly extended?: { readonly supportedFeatures?: readonly string[] }
  }[]
}

const read = async <T>(file: string): Promise<T> => parse(await readFile(join(CONFORMANCE, file), 'utf8')) as T

function featuresOf(name: string): readonly string[] | undefined {
  const gatewayClass = { kind: 'GatewayClass', metadata: { name, generation: 1 }, spec: { controllerName: CONTROLLER_NAME } } as GatewayClass
  const { supportedFeatures } = gatewayClassStatus(gatewayClass).status as { supportedFeatures?: readonly { readonly name: string }[] }
  return supportedFeatures?.map((feature) => feature.name)
}

test('GatewayClass proxy names exactly the features that passed in the kept run of the conformance suite, sorted', async () => {
  const { passing } = await read<{ passing: readonly string[] }>('results.yaml')
  expect(featuresOf(GATEWAY_CLASS)).toEqual(passing.toSorted())
})

test('every supported feature is in the official report of that run', async () => {
  const { profiles } = await read<Report>('report.yaml')
  expect(profiles.map(({ name, core }) => [name, core.result])).toEqual(
    ['GATEWAY-GRPC', 'GATEWAY-HTTP', 'GATEWAY-TCP', 'GATEWAY-TLS'].map((name) => [name, 'success']),
  )
  const extended = new Set(profiles.flatMap((profile) => profile.extended?.supportedFeatures ?? []))
  expect(featuresOf(GATEWAY_CLASS)).toEqual(expect.arrayContaining([...extended]))
})

test('other classes name no features', () => expect(featuresOf('theirs')).toBeUndefined())
