import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const headers = (values: Record<string, string>) => ({ headers: values })

export default expectations({
  'a regular expression must match the complete value': async (run) => {
    expect((await run.send(8080, headers({ 'x-version': 'v2', 'x-tester': 'my team-red' }))).json().name).toBe('beta')
  },
  'values are case-sensitive, names are not': async (run) => {
    expect((await run.send(8080, headers({ 'X-Version': 'v2' }))).json().name).toBe('beta')
    expect((await run.send(8080, headers({ 'x-version': 'V2' }))).json().name).toBe('stable')
  },
  'a header match takes precedence over a query match': async (run) => {
    expect((await run.send(8080, { path: '/?preview=1', ...headers({ 'x-version': 'v2' }) })).json().name).toBe('beta')
  },
})
