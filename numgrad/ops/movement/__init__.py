"""Operations that rearrange: views, casts, joining and splitting."""
