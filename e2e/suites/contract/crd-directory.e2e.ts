import { expect, test } from '@jest/globals'
import { readChunk } from '../../../operator/source/document.ts'
import { aiRows } from './rows/ai.ts'
import { authenticationRows } from './rows/authentication.ts'
import { backendRows, parametersRows } from './rows/backend.ts'
import { frontendRows } from './rows/frontend.ts'
import { mcpRows } from './rows/mcp.ts'
import { targetRows } from './rows/targets.ts'
import { trafficRows } from './rows/traffic.ts'

const rows = [...aiRows, ...authenticationRows, ...backendRows, ...parametersRows, ...frontendRows, ...mcpRows, ...targetRows, ...trafficRows]

// crd.e2e.ts sends the same rows to an API server.
test('a directory of manifests accepts and rejects the same objects as an API server', () => {
  const wrong = rows.flatMap(([sentence, manifest, field]) => {
    const isRefused = readChunk(JSON.stringify(manifest)).findings.some(({ severity }) => severity === 'error')
    return isRefused === (field !== undefined) ? [] : [`${sentence}: ${isRefused ? 'refused' : 'accepted'}`]
  })
  expect(wrong).toEqual([])
})
