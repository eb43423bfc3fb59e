import { describe, expect, test } from '@jest/globals'
import { runCooperatively, type Cooperative } from './cooperative.ts'

/** Work of some slices; records when it runs. */
function* makeWork(name: string, slices: number, record: string[]): Cooperative<string> {
  for (let slice = 0; slice < slices; slice++) {
    record.push(name)
    const endMs = performance.now() + 3.5
    while (performance.now() < endMs);
    yield
  }
  return name
}

describe('cooperative work', () => {
  test('lets other events be processed between its slices', async () => {
    const record: string[] = []
    const work = runCooperatively(makeWork('work', 4, record))
    const timer = setInterval(() => record.push('event'), 1)
    expect(await work).toBe('work')
    clearInterval(timer)
    expect(record.slice(0, -1)).toContain('event')
  })

  test('of several requests runs one slice per turn of the event loop', async () => {
    const record: string[] = []
    let isCounting = true
    const countTurn = (): void => {
      record.push('turn')
      if (isCounting) setImmediate(countTurn)
    }
    setImmediate(countTurn)
    await Promise.all(['a', 'b', 'c'].map(async (name) => runCooperatively(makeWork(name, 5, record))))
    isCounting = false
    const turns = record.slice(record.indexOf('turn')).join(' ').split('turn')
    expect(turns.every((turn) => turn.trim().split(' ').length <= 1)).toBe(true)
  })

  test('that is short does not wait for the turn of long work', async () => {
    const record: string[] = []
    const long = runCooperatively(makeWork('long', 3, record)).then(() => record.push('end of long'))
    await runCooperatively(makeWork('short', 0, record)).then(() => record.push('end of short'))
    await long
    expect(record).toEqual(['long', 'end of short', 'long', 'long', 'end of long'])
  })

  test('stops if its checkpoint throws', async () => {
    const record: string[] = []
    const work = runCooperatively(makeWork('work', 100, record), () => {
      throw new Error('the client disconnected')
    })
    await expect(work).rejects.toThrow('the client disconnected')
    expect(record).toEqual(['work'])
  })
})
