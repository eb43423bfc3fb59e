declare module 'unix-crypt-td-js' {
  /** crypt(3) with DES. Returns 13 characters. The first 8 bytes of the password are used; the salt is the first 2 characters of `salt`. */
  export default function crypt(password: readonly number[], salt: string): string
}
