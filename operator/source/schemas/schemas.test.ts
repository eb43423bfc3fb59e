import { describe, expect, test } from '@jest/globals'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as models from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1'
import { createReader } from '../reader.ts'

/** Compares with published schemas: every object that our schemas accept must satisfy them, too. */
const testdata = join(import.meta.dirname, '../../translate/testdata')
type Model = new (data: object) => { validate(): void }
const modelOf = (kind: string): Model | undefined => (models as unknown as Record<string, Model>)[kind]
/** Cases with an older version, or with a field that the package does not know yet. */
const exceptions = new Set(['service-port-missing', 'tlsroute-old-version'])

describe('objects that the directory source accepts are valid Gateway API:', () => {
  test.each(readdirSync(testdata).filter((name) => !exceptions.has(name)))('%s', async (name) => {
    const { objects } = await createReader(join(testdata, name, 'in.yaml')).load()
    for (const object of objects) {
      const Model = modelOf(object.kind)
      if (!Model) continue
      const { status: _status, ...written } = object as typeof object & { status?: object }
      expect(() => new Model(written).validate()).not.toThrow()
    }
  })

  test('each listed exception is still rejected', async () => {
    for (const name of exceptions) {
      expect(readFileSync(join(testdata, name, 'in.yaml'), 'utf8')).not.toBe('')
      const { objects } = await createReader(join(testdata, name, 'in.yaml')).load()
      const isRefused = objects.some((object) => {
        const Model = modelOf(object.kind)
        try {
          if (Model) new Model(object).validate()
          return false
        } catch {
          return true
        }
      })
      expect([name, isRefused]).toEqual([name, true])
    }
  })
})
