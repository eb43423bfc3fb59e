import { describe, expect, test } from '@jest/globals'
import { allocateCells, SharedCells } from './shared-cells.ts'

const WORDS_OF_CELL = 8
const zero = () => undefined

describe('shared cells', () => {
  test('of one name are one cell for all threads, and only the first initializes it', () => {
    const memory = allocateCells(16)
    const [first, second] = [new SharedCells(memory), new SharedCells(memory)]
    const cell = first.open('a', (content) => void (content[0] = 7n))
    Atomics.add(cell?.content ?? new BigInt64Array(1), 0, 1n)
    const again = second.open('a', (content) => void (content[0] = 100n))
    expect(again?.content[0]).toBe(8n)
    expect(second.find('a')?.content[0]).toBe(8n)
  })

  test('of different names are different cells', () => {
    const cells = new SharedCells(allocateCells(64))
    const opened = Array.from({ length: 40 }, (_, index) => cells.open(`name ${index}`, (content) => void (content[0] = BigInt(index))))
    expect(opened.map((cell) => Number(cell?.content[0]))).toEqual(Array.from({ length: 40 }, (_, index) => index))
    expect(cells.find('name 40')).toBeUndefined()
  })

  test('are limited in number: a name beyond it has no cell', () => {
    const cells = new SharedCells(allocateCells(4))
    const opened = Array.from({ length: 5 }, (_, index) => cells.open(`name ${index}`, zero))
    expect(opened.filter((cell) => cell === undefined)).toHaveLength(1)
  })

  test('are reused by the order of their use if the table may evict', () => {
    const memory = allocateCells(4)
    const cells = new SharedCells(memory, { evicts: true })
    const opened = Array.from({ length: 4 }, (_, index) => cells.open(`name ${index}`, (content) => void (content[0] = BigInt(index))))
    const words = new BigInt64Array(memory)
    // Unused for 4, 3, 2 and 1 seconds, by position.
    for (let cell = 0; cell < 4; cell++) words[cell * WORDS_OF_CELL + 1] = (words[cell * WORDS_OF_CELL + 1] ?? 0n) - BigInt(4 - cell)
    const oldest = Number(words[2])
    expect(cells.open('new', (content) => void (content[0] = 50n))?.content[0]).toBe(50n)
    expect(cells.evictions).toBe(1)
    expect(opened.map((_, index) => cells.find(`name ${index}`) !== undefined)).toEqual(opened.map((_, index) => index !== oldest))
    expect(cells.find('new')?.content[0]).toBe(50n)
  })

  test('are reused for another name after an hour, and no other name reads its content', () => {
    const memory = allocateCells(4)
    const cells = new SharedCells(memory)
    const opened = Array.from({ length: 4 }, (_, index) => cells.open(`name ${index}`, (content) => void (content[0] = BigInt(index))))
    const words = new BigInt64Array(memory)
    for (let cell = 0; cell < 2; cell++) words[cell * WORDS_OF_CELL + 1] = (words[cell * WORDS_OF_CELL + 1] ?? 0n) - 3601n
    const added = cells.open('new', (content) => void (content[0] = 50n))
    expect(added?.content[0]).toBe(50n)
    // Two cells were stale: one is of the new name, the other one of the name that lost its cell first.
    const touched = opened.map((cell) => cell?.touch()?.content[0])
    expect(touched.filter((value) => value === undefined)).toHaveLength(1)
    expect(touched.every((value, index) => value === undefined || value === BigInt(index))).toBe(true)
    expect(added?.touch()?.content[0]).toBe(50n)
  })
})
