import { describe, expect, test } from '@jest/globals'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { Exchange } from './exchange.ts'
import { defineSlot } from './slot.ts'

const numbers = defineSlot<number>('numbers')
const texts = defineSlot<string>('texts')
const own = defineSlot<string>('own', { isForked: false })

const newExchange = (): Exchange => new Exchange(testConnection, testRequest(), 0)

describe('a slot', () => {
  test('is undefined until a value is set', () => {
    expect(numbers.get(newExchange())).toBeUndefined()
  })

  test('keeps one value per exchange, apart from other slots', () => {
    const [one, other] = [newExchange(), newExchange()]
    numbers.set(one, 1)
    texts.set(one, 'a')
    numbers.set(other, 2)
    expect([numbers.get(one), texts.get(one), numbers.get(other), texts.get(other)]).toEqual([1, 'a', 2, undefined])
  })

  test('passes its value to a forked exchange, and not back', () => {
    const exchange = newExchange()
    numbers.set(exchange, 1)
    const fork = exchange.fork(exchange.request)
    numbers.set(fork, 2)
    expect([numbers.get(exchange), numbers.get(fork)]).toEqual([1, 2])
  })

  test('with isForked false keeps its value from a forked exchange', () => {
    const exchange = newExchange()
    numbers.set(exchange, 1)
    own.set(exchange, 'mine')
    const fork = exchange.fork(exchange.request)
    expect([numbers.get(fork), own.get(fork), own.get(exchange)]).toEqual([1, undefined, 'mine'])
  })
})
