import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { readdirSync } from 'node:fs'
import { CASES, renderCase } from '../../../operator/deploy/testing.ts'
import type { DeployObject } from '../../../operator/deploy/types.ts'
import { connect, type ApiServer } from './api-server.ts'

let server: ApiServer
beforeAll(async () => {
  server = await connect()
})
afterAll(() => server.close())

const plurals: Readonly<Record<string, string>> = {
  ServiceAccount: 'serviceaccounts',
  ConfigMap: 'configmaps',
  Service: 'services',
  Deployment: 'deployments',
  PodDisruptionBudget: 'poddisruptionbudgets',
  HorizontalPodAutoscaler: 'horizontalpodautoscalers',
  Secret: 'secrets',
}

/** Applies an object server-side as a dry run; returns the errors. */
async function applyDry(object: DeployObject): Promise<string[]> {
  const { namespace, name } = object.metadata
  const prefix = object.apiVersion.includes('/') ? `/apis/${object.apiVersion}` : `/api/${object.apiVersion}`
  const path = `${prefix}/namespaces/${namespace}/${plurals[object.kind]}/${name}?dryRun=All&force=true&fieldManager=contract&fieldValidation=Strict`
  const { causes } = await server.call('PATCH', path, object, 'application/apply-patch+yaml')
  return causes.map(({ field, message }) => `${object.kind} ${field}: ${message}`)
}

/** Cases that only the API server can reject (operator.md §3.3; fileKeyRef is behind a feature gate), with the expected error. */
const refused: Readonly<Record<string, RegExp>> = {
  'hpa-empty': /HorizontalPodAutoscaler spec.maxReplicas: /,
  'overlay-selector': /Deployment .*selector/,
  'env-override': /Deployment .*valueFrom: .*must specify one of/,
  resources: /Deployment .*must be one of the names in pod.spec.resourceClaims/,
}

test.each(readdirSync(CASES))('the API server accepts the objects of case %s', async (name) => {
  const result = await renderCase(name)
  const errors = result.ok ? (await Promise.all(result.objects.map(applyDry))).flat() : []
  const expected = refused[name]
  if (expected) expect(errors.join('\n')).toMatch(expected)
  else expect(errors).toEqual([])
})
