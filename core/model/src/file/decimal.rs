//! Decimal numbers as exact integers of a fixed number of places.

/// Why a number has no exact form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DecimalError {
    /// Infinity or "not a number".
    NotFinite,
    /// Below zero.
    Negative,
    /// Digits beyond the places.
    TooFine,
    /// Beyond 64 bits.
    TooLarge,
}

/// The number that TOML writes as `text` (sign, digits, a fraction, an exponent), times 10^`places`.
pub(super) fn scaled(text: &str, places: u32) -> Result<u64, DecimalError> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).filter(|&b| b != b'_').collect();
    if digits.is_empty() || digits.iter().any(|b| !b.is_ascii_digit()) {
        return Err(DecimalError::NotFinite);
    }
    let Some(first) = digits.iter().position(|&b| b != b'0') else {
        return Ok(0);
    };
    if is_negative {
        return Err(DecimalError::Negative);
    }
    let exponent = match exponent.map(|text| text.replace('_', "")) {
        None => 0,
        Some(text) if text.starts_with('-') => text.parse::<i64>().map_err(|_| DecimalError::TooFine)?,
        Some(text) => text.parse::<i64>().map_err(|_| DecimalError::TooLarge)?,
    };
    let last = digits.iter().rposition(|&b| b != b'0').unwrap_or(first);
    let trailing = (digits.len() - 1 - last) as i64;
    let fraction_digits = fraction.bytes().filter(|&b| b != b'_').count() as i64;
    // The number is the digits from `first` to `last` times ten to this power.
    let power = exponent
        .checked_add(i64::from(places) - fraction_digits + trailing)
        .ok_or(if exponent < 0 { DecimalError::TooFine } else { DecimalError::TooLarge })?;
    if power < 0 {
        return Err(DecimalError::TooFine);
    }
    let mut value = digits[first..=last]
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    for _ in 0..power.min(20) {
        value = value.and_then(|value| value.checked_mul(10));
    }
    value.ok_or(DecimalError::TooLarge)
}

/// The shortest decimal text of `number` times 10^-`places`, always with a decimal point.
pub(super) fn text(number: u64, places: usize) -> String {
    let scale = 10_u64.pow(places as u32);
    let fraction = format!("{:0places$}", number % scale);
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    format!("{}.{fraction}", number / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(scaled("0.4", 9), Ok(400_000_000));
        assert_eq!(scaled("1", 9), Ok(1_000_000_000));
        assert_eq!(scaled("+1.50", 6), Ok(1_500_000));
        assert_eq!(scaled("4e-1", 9), Ok(400_000_000));
        assert_eq!(scaled("0.04E+1", 9), Ok(400_000_000));
        assert_eq!(scaled("0.0000000010", 9), Ok(1));
        assert_eq!(scaled("-0.0", 9), Ok(0));
        assert_eq!(scaled("0e99999999999999999999", 9), Ok(0));
    }

    #[test]
    fn what_is_not_exact_is_refused() {
        assert_eq!(scaled("0.0000000001", 9), Err(DecimalError::TooFine));
        assert_eq!(scaled("1e-99999999999999999999", 9), Err(DecimalError::TooFine));
        assert_eq!(scaled("1e99999999999999999999", 9), Err(DecimalError::TooLarge));
        assert_eq!(scaled("1e9223372036854775807", 9), Err(DecimalError::TooLarge));
        assert_eq!(scaled("1e-9223372036854775808", 9), Err(DecimalError::TooFine));
        assert_eq!(scaled("99999999999999999999", 0), Err(DecimalError::TooLarge));
        assert_eq!(scaled("-0.1", 9), Err(DecimalError::Negative));
        assert_eq!(scaled("inf", 9), Err(DecimalError::NotFinite));
        assert_eq!(scaled("nan", 9), Err(DecimalError::NotFinite));
    }

    #[test]
    fn text_reads_back() {
        for number in [0, 1, 10, 400_000_000, 1_000_000_000, 1_234_567_891, u64::MAX] {
            assert_eq!(scaled(&text(number, 9), 9), Ok(number));
        }
        assert_eq!(text(900_000, 6), "0.9");
        assert_eq!(text(1_000_000, 6), "1.0");
    }
}
