import { expect, test } from '@jest/globals'
import { condition } from '../model/conditions.ts'
import { withWarnings } from './deployment.ts'

test('warnings about parameters join what translation has reported in PartiallyInvalid', () => {
  const status = {
    group: 'g',
    kind: 'Gateway',
    namespace: 'ns',
    name: 'gw',
    status: { conditions: [condition('PartiallyInvalid', true, 'UnsupportedValue', 'one [PX1028]', 1)] },
  }
  expect(withWarnings(status, ['two', 'three'], 1).status).toEqual({
    conditions: [condition('PartiallyInvalid', true, 'InvalidParameters', 'one [PX1028]; two; three [PX1023]', 1)],
  })
})
