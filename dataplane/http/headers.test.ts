import { describe, expect, test } from '@jest/globals'
import { HeaderList } from './headers.ts'

const fields = (list: HeaderList): string => [...list].map(([name, value]) => `${name}=${value}`).join(' ')

describe('spellings of header names with underscores', () => {
  test.each<[string, string[], (list: HeaderList) => void, string]>([
    ['set removes them', ['x_user', 'evil', 'a', '1'], (list) => list.set('x-user', 'alice'), 'a=1 x-user=alice'],
    ['remove removes them', ['x_secret', '1', 'x-secret', '2', 'a', '1'], (list) => list.remove('x-secret'), 'a=1'],
    ['removal by value removes all of them', ['x_key', '1', 'x-key', '2', 'x-key', '3'], (list) => list.remove('x-key', (value) => value === '2'), 'x-key=3'],
    ['mixed ones are removed too', ['x-my_user', '1', 'x_my-user', '2', 'x_my_user', '3'], (list) => list.remove('x-my-user'), ''],
    ['append keeps them', ['x_user', '1'], (list) => list.append('x-user', '2'), 'x_user=1 x-user=2'],
    ['other names stay', ['x_user_id', '1', 'xuser', '2', '_x_user', '3'], (list) => list.set('x-user', '4'), 'x_user_id=1 xuser=2 _x_user=3 x-user=4'],
    ['values with underscores stay', ['a', 'x_user', 'b', 'x_user'], (list) => list.remove('x-user'), 'a=x_user b=x_user'],
    ['one that was set before stays', ['a', '1'], (list) => (list.set('x_user', '2'), list.set('x-user', '3')), 'a=1 x_user=2 x-user=3'],
    ['one that is set afterwards stays', ['x_user', '1'], (list) => (list.set('x-user', '2'), list.set('x_user', '3')), 'x-user=2 x_user=3'],
  ])('%s', (_, raw, change, expected) => {
    const list = new HeaderList([...raw])
    change(list)
    expect(fields(list)).toBe(expected)
  })

  test('a copy knows which fields were changed', () => {
    const list = new HeaderList(['x-a', '1'])
    list.set('x-user', 'alice')
    const copy = list.clone()
    copy.remove('x-b')
    expect(['x-user', 'x_user', 'x-b', 'x-a'].map((name) => copy.isChanged(name))).toEqual([true, true, true, false])
    expect(list.isChanged('x-b')).toBe(false)
  })
})
