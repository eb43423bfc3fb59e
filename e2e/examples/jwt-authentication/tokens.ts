/** Tokens signed with the key whose public part is in the manifests; the private key was discarded. */
export const tokens = {
  /** For bob, in the group `staff`; valid until 2100. */
  valid:
    'eyJhbGciOiJFUzI1NiIsImtpZCI6ImV4YW1wbGUtMSJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLmNvbSIsImF1ZCI6InNob3AiLCJzdWIiOiJib2IiLCJncm91cHMiOlsic3RhZmYiXSwiZXhwIjo0MTAyNDQ0ODAwfQ.KJ8NvZ630h4IQE0Vvl7hPqxNfhCXcdD719RMIG7nUWaimZJSwIgfUSLYhvgjlvmUuuZPieDhKUmLyTkCZLf4HA',
  /** The same, expired in 2020. */
  expired:
    'eyJhbGciOiJFUzI1NiIsImtpZCI6ImV4YW1wbGUtMSJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLmNvbSIsImF1ZCI6InNob3AiLCJzdWIiOiJib2IiLCJncm91cHMiOlsic3RhZmYiXSwiZXhwIjoxNTc3ODM2ODAwfQ.HHRimr-_AiD0kyKFSvnc3WoZkmjlFM23RQfcQsxZrhY_Kfw1Gpqcxqg11QbdfYDGbS_ceE4qGS-s16EU-xeEiQ',
  /** The same for another audience. */
  foreign:
    'eyJhbGciOiJFUzI1NiIsImtpZCI6ImV4YW1wbGUtMSJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLmNvbSIsImF1ZCI6ImVsc2V3aGVyZSIsInN1YiI6ImJvYiIsImdyb3VwcyI6WyJzdGFmZiJdLCJleHAiOjQxMDI0NDQ4MDB9.kcC7aiqscaVq1b9XS3f7tsG1c23WMwiWmH6r2WhNTHmrxgIPt_5qyWsDeKPwV9nDtCBSa-fd1Mv8M-EAcrSKcw',
} as const
