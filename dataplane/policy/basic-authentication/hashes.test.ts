import { describe, expect, test } from '@jest/globals'
import { hashFormats } from '#api/credentials/htpasswd.ts'
import { verifyPassword } from './hashes.ts'

const isKnownFormat = (hash: string): boolean => Object.values(hashFormats).some((format) => format.test(hash))

/** Written by htpasswd 2.4. */
const vectors: [string, string, string][] = [
  ['apr1, one character', 'a', '$apr1$0/3nxpsF$Hx86DUY/vjpVdafUapG20.'],
  ['apr1', 'secret', '$apr1$eRtC.pmZ$0prQOzhwZzwfX.aC3xKTI0'],
  ['apr1, longer than a digest', 'a longer password, of 33 characters', '$apr1$nrv5qm9Z$d0cmLIZ9D4vbikKm61z3M.'],
  ['apr1, not ASCII', 'пароль-ü', '$apr1$K.2vM2sZ$7QrXhYGPKVoFbJ2c785KE/'],
  ['{SHA}', 'secret', '{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='],
  ['{SHA}, not ASCII', 'пароль-ü', '{SHA}j6jO/5GS+VAklEy+gEyoExcgwwE='],
  ['DES', 'secret', 'ZYzkUPb0dAg3s'],
  ['DES, which reads 8 characters', 'a longer password, of 33 characters', 'gfuVYmXbQksW2'],
  ['DES, not ASCII', 'пароль-ü', 'FC0xq7CSJXeXw'],
  ['bcrypt 2y', 'secret', '$2y$04$DSPzK1TY8K4zf9GNutemduhMRfnZ9Iz4TdfuKcKy/LtO3uiSTVsWi'],
  ['bcrypt 2a', 'secret', '$2a$04$DSPzK1TY8K4zf9GNutemduhMRfnZ9Iz4TdfuKcKy/LtO3uiSTVsWi'],
  ['bcrypt 2b', 'secret', '$2b$04$DSPzK1TY8K4zf9GNutemduhMRfnZ9Iz4TdfuKcKy/LtO3uiSTVsWi'],
  ['bcrypt 2x of ASCII', 'secret', '$2x$04$DSPzK1TY8K4zf9GNutemduhMRfnZ9Iz4TdfuKcKy/LtO3uiSTVsWi'],
  ['bcrypt 2y, not ASCII', 'пароль-ü', '$2y$04$NgJ11vAyX78koMiZCuMSpuyKwHbmHSnI3TO4vh4DRF7LR4QELHUgW'],
]

describe('hashes of htpasswd', () => {
  test.each(vectors)('of format %s are verified', (_, password, hash) => {
    expect(verifyPassword(password, hash)).toBe(true)
    expect(verifyPassword(`x${password}`, hash)).toBe(false)
    expect(verifyPassword('', hash)).toBe(false)
  })

  test('of format bcrypt 2x are rejected for passwords beyond ASCII', () => {
    expect(verifyPassword('пароль-ü', '$2x$04$NgJ11vAyX78koMiZCuMSpuyKwHbmHSnI3TO4vh4DRF7LR4QELHUgW')).toBe(false)
  })

  test.each([
    'secret',
    '',
    '$5$salt$hash',
    '$2y$31$DSPzK1TY8K4zf9GNutemduhMRfnZ9Iz4TdfuKcKy/LtO3uiSTVsWi',
    '$apr1$$Hx86DUY/vjpVdafUapG20.',
    '{SHA}x',
    '*',
    '!',
  ])('do not include %j', (text) => {
    expect(isKnownFormat(text)).toBe(false)
    expect(verifyPassword(text, text)).toBe(false)
  })

  test('are not compared as raw passwords, even if they look like DES', () => {
    expect(verifyPassword('abcdefghijklm', 'abcdefghijklm')).toBe(false)
  })
})
