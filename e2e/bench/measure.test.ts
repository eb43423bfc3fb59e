import { describe, expect, test } from '@jest/globals'
import { alternate, inSeconds, type Bench } from './bench.ts'
import { drawChart, marginOf } from './chart.ts'
import { parseH2load, parseWrk } from './load.ts'
import { judge, judgeLimit, median, quantile } from './measure.ts'
import { rankFunctions } from './profile.ts'
import { readCpuSeconds, readResidentBytes, readResidentParts } from './proc.ts'

describe('the output of load generators', () => {
  test('of wrk is parsed with totals, units and every kind of failure', () => {
    const text = `Running 1s test @ http://127.0.0.1:1/
  63018 requests in 1.10s, 14.96MB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:  57289.09`
    expect(parseWrk(text)).toEqual({ requests: 63_018, seconds: 1.1, bytes: 14.96 * 1024 ** 2, failures: 15 })
    expect(parseWrk('  10 requests in 500.00ms, 2.00KB read').seconds).toBe(0.5)
    expect(() => parseWrk('unable to connect')).toThrow('unable to connect')
  })

  test('of h2load is parsed with succeeded and failed requests', () => {
    const text = `requests: 4096 total, 4100 started, 4096 done, 4090 succeeded, 6 failed, 0 errored, 0 timeout
traffic: 1.20MB (1258291) total, 30.00KB (30720) headers (space savings 90.00%), 400.00KB (409600) data`
    expect(parseH2load(text, 2)).toEqual({ requests: 4090, seconds: 2, bytes: 1_258_291, failures: 6 })
  })
})

describe('a result', () => {
  const result = { case: 'c', peerName: 'p', unit: 'u' }
  test.each([
    ['more than half of the peer where half is required', judge({ ...result, ours: 51, peer: 100 }, { atLeast: 0.5 }), true, 1.02],
    ['less than half of the peer where half is required', judge({ ...result, ours: 49, peer: 100 }, { atLeast: 0.5 }), false, 0.98],
    ['twice the cost where twice is allowed', judge({ ...result, ours: 20, peer: 10 }, { atMost: 2 }), true, 1],
    ['three times the cost where twice is allowed', judge({ ...result, ours: 30, peer: 10 }, { atMost: 2 }), false, 2 / 3],
    ['a sufficient ratio of rounds with insufficient medians', judge({ ...result, ours: 49, peer: 100, ratio: 0.51 }, { atLeast: 0.5 }), true, 1.02],
    ['no failure where none is allowed', judgeLimit('c', 0, 0, 'u'), true, 1],
    ['one failure where none is allowed', judgeLimit('c', 1, 0, 'u'), false, 0],
  ])('is judged against its limit: %s', (_sentence, judged, passed, margin) => {
    expect(judged.passed).toBe(passed)
    expect(marginOf(judged)).toBeCloseTo(margin, 5)
  })

  test('that is NaN does not pass', () => {
    expect(judgeLimit('c', Number.NaN, 1, 'u').passed).toBe(false)
  })

  test('of alternating rounds starts with each of the two in turn and has the median ratio of rounds', async () => {
    const order: string[] = []
    const sample = (name: string, values: number[]) => async () => {
      order.push(name)
      return { rate: values.shift() ?? Number.NaN }
    }
    const log = () => {}
    const bench: Bench = { directory: '', bundle: '', upstreamPort: 0, proxyCpu: 0, loadCpu: 0, seconds: 3, rounds: 1, ours: 'ours', profiles: undefined, log }
    // Three warm-up rounds, then three counted rounds of a machine that slows down.
    expect(await alternate(inSeconds(bench), sample('a', [9, 9, 9, 80, 40, 30]), sample('b', [9, 9, 9, 100, 50, 20]))).toEqual({
      a: { rate: 40 },
      b: { rate: 50 },
      ratio: { rate: 0.8 },
    })
    expect(order.join('')).toBe('abbaabbaabba')
    expect(inSeconds(bench).seconds).toBe(1)
  })

  test('is reduced to median and quantiles', () => {
    expect([median([3, 1, 2]), median([1, 2, 3, 4]), quantile([...Array(100).keys()], 0.99), median([])]).toEqual([2, 2.5, 99, Number.NaN])
  })

  test('has a bar in the chart, in another colour if it fails', () => {
    const results = [judgeLimit('good & well', 1, 2, 'ms'), judgeLimit('bad', 3, 2, 'ms')]
    const svg = drawChart(results, 'note')
    expect(svg).toContain('good &amp; well')
    expect([...svg.matchAll(/fill="(#2f7d5b|#b5472f)"/g)].map((match) => match[1])).toEqual(['#2f7d5b', '#b5472f'])
  })
})

test('CPU time and resident memory of a process are read from /proc', () => {
  expect(readCpuSeconds(process.pid)).toBeGreaterThan(0)
  expect(readResidentBytes(process.pid)).toBeGreaterThan(10 * 1024 ** 2)
})

test('the parts of resident memory are all of it, and memory that is allocated appears in them', () => {
  const before = readResidentParts(process.pid)
  const buffer = Buffer.alloc(40 * 1024 ** 2, 'x')
  const after = readResidentParts(process.pid)
  expect(before['files']).toBeGreaterThan(1024 ** 2)
  // In which of them depends on its neighbour: the kernel joins mappings.
  const growth = Object.entries(after).map(([part, bytes]) => bytes - (before[part] ?? 0))
  expect(Math.max(...growth)).toBeGreaterThan(buffer.length * 0.9)
  const sum = Object.values(after).reduce((total, bytes) => total + bytes, 0)
  expect(sum / readResidentBytes(process.pid)).toBeCloseTo(1, 0)
})

test('functions of a CPU profile are ranked by self time without idle time', () => {
  const node = (id: number, functionName: string, url = '') => ({ id, callFrame: { functionName, url, lineNumber: 9 } })
  const nodes = [node(1, '(idle)'), node(2, 'parse', 'file:///x/main.js'), node(3, ''), node(4, 'parse', 'file:///x/main.js')]
  expect(rankFunctions({ nodes, samples: [1, 2, 3, 4], timeDeltas: [1000, 30, 40, 30] })).toEqual([
    { name: 'parse main.js:10', share: 0.6 },
    { name: '(anonymous)', share: 0.4 },
  ])
})
